#include "report/conversion.h"

#include <algorithm>

#include "convert/rope_convention.h"
#include "diagnose/exceptions.h"

namespace tensordiff {

namespace {

std::vector<ConversionRow> rows_of(const Conversion& conversion) {
  std::vector<ConversionRow> rows;
  for (const ConversionRule& rule : conversion.rules)
    rows.push_back({text_of(rule.form), rule.kind_a, rule.kind_b, rule.pairs, {}, rule.form});
  for (const Exception& exception : conversion.exceptions)
    if (const std::size_t rule = conversion.rule_of[exception.pair]; rule < rows.size())
      rows[rule].exceptions.push_back(exception.pair);
  std::ranges::stable_sort(rows, {},
                           [](const ConversionRow& row) { return row.exceptions.empty(); });
  return rows;
}

}  // namespace

void report_conversion(const Sides& sides, Report& report) {
  if (!sides.conversion) return;
  report.conversion = rows_of(*sides.conversion);
  if (std::string open = open_rope_order(sides.a, sides.b); !open.empty())
    report.notes.push_back("conversion: " + open);
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
