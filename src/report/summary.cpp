// What a report comes to, in one word and six counts.

#include <algorithm>

#include "report/report.h"

namespace tensordiff {
namespace {

uint64_t count_of(const Report& report, Status status) {
  const auto has = [&](const PairRow& row) { return row.comparison.status == status; };
  return static_cast<uint64_t>(std::ranges::count_if(report.pairs, has));
}

}  // namespace

Summary summarise(const Report& report) {
  Summary summary;
  summary.identical = count_of(report, Status::identical);
  summary.equal = count_of(report, Status::equal);
  summary.close = count_of(report, Status::close);
  summary.different = count_of(report, Status::different);
  summary.incomparable = count_of(report, Status::incomparable);
  summary.error = count_of(report, Status::error);

  const auto missing = [](const Problem& problem) { return problem.severity == Severity::missing; };
  bool faulty = summary.error > 0 || std::ranges::any_of(report.a.problems, missing) ||
                std::ranges::any_of(report.b.problems, missing);
  bool differs = summary.different > 0 || summary.incomparable > 0;
  for (const auto* side : {&report.only_a, &report.only_b}) {
    for (const Report::Unpaired& tensor : *side) {
      faulty = faulty || !tensor.id.fault.empty();
      differs = differs || !tensor.layer_absent;
    }
  }
  summary.verdict = faulty              ? "trouble"
                    : differs           ? "different"
                    : summary.close > 0 ? "close"
                                        : "same";
  return summary;
}

}  // namespace tensordiff
