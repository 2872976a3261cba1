#include "report/conversion.h"

#include <algorithm>

#include "diagnose/exceptions.h"

namespace tensordiff {

void report_conversion(const Sides& sides, Report& report) {
  if (!sides.conversion) return;
  for (std::string& line : summary_of(*sides.conversion)) report.notes.push_back(std::move(line));
  std::vector<std::optional<double>> errors;
  for (const PairRow& row : report.pairs) errors.push_back(row.comparison.diff.rel_l2);
  const auto operands = [&](const Pair& pair) { return operands_of(sides, pair); };
  for (Finding& finding :
       explain_exceptions(*sides.conversion, sides.matching.pairs, operands, errors)) {
    std::erase_if(report.findings, [&](const Finding& it) { return it.pair == finding.pair; });
    report.findings.push_back(std::move(finding));
  }
  std::ranges::stable_sort(report.findings, {}, &Finding::pair);
}

}  // namespace tensordiff
