#include "report/rank_orders.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/side.h"
#include "diagnose/hypotheses/diagnosis.h"

namespace tensordiff {
namespace {

constexpr std::size_t kShownMax = 16;  // Of the blocks in a sentence.

// Which block of A stands in each place of B; nullptr where a finding does not tell.
const std::vector<uint64_t>* source_of(const Finding& finding) {
  if (finding.code != diagnoses::block_permutation.code) return nullptr;
  const auto found = std::ranges::find(finding.parameters, "source", &Parameter::name);
  if (found == finding.parameters.end()) return nullptr;
  return std::get_if<std::vector<uint64_t>>(&found->value);
}

std::string list_of(const std::vector<uint64_t>& source) {
  const std::size_t shown = std::min(source.size(), kShownMax);
  return fmt::format(
      "{}{}", fmt::join(source.begin(), source.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
      shown < source.size() ? ", …" : "");
}

// The side whose `ranks` ranks each hold another piece of this tensor; '\0' for none.
char gathered_side(const PairRow& row, std::size_t ranks) {
  for (const Step& step : row.steps)
    if (step.op == Op::concat && step.argument.size() > 2 && step.argument[1] == ranks &&
        step.argument[2] <= 1)
      return step.side;
  return '\0';
}

}  // namespace

void name_rank_orders(Report& report) {
  for (Finding& finding : report.findings) {
    const std::vector<uint64_t>* source = source_of(finding);
    if (!source || source->empty()) continue;
    const char side = gathered_side(report.pairs[finding.pair], source->size());
    if (side == '\0' || finding.explanation.starts_with("the ranks of")) continue;
    // In place i of B stands block source[i] of A: of B's ranks, that is what they hold.
    std::vector<uint64_t> held = *source;
    if (side == 'a')
      for (std::size_t i = 0; i < source->size(); ++i)
        if ((*source)[i] < held.size()) held[(*source)[i]] = i;
    finding.explanation =
        fmt::format("the ranks of {} are in the wrong order: ranks 0 to {} hold the pieces [{}]",
                    capital(side), held.size() - 1, list_of(held));
  }
}

std::string block_order_text(const Finding& finding) {
  const std::vector<uint64_t>* source = source_of(finding);
  if (!source) return "";
  return fmt::format("{} blocks are in the order [{}], in rows or columns", source->size(),
                     list_of(*source));
}

}  // namespace tensordiff
