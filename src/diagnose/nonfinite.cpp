// NaN or infinite where the other side is not: an overflow, a division by zero, memory that was
// never written. From finite inputs it is the most telling of all differences.

#include <fmt/format.h>

#include <cmath>

#include "diagnose/diagnosis.h"
#include "diagnose/fit.h"

namespace tensordiff {
namespace {

std::optional<Explanation> examine(const Case& it) {
  const Diff& diff = it.site.comparison.diff;
  if (diff.nonfinite_mismatch == 0) return std::nullopt;
  std::vector<uint64_t> rows;
  uint64_t whole_rows = 0;
  for (uint64_t row = 0; row < it.a.rows(); ++row) {
    uint64_t count = 0;
    for (uint64_t i = 0; i < it.a.features; ++i)
      count += std::isfinite(it.a.row(row)[i]) != std::isfinite(it.b.row(row)[i]);
    if (count > 0) rows.push_back(row);
    whole_rows += count == it.a.features;
  }
  const Stats &a = it.site.comparison.a, &b = it.site.comparison.b;
  const char worse = b.nan + b.inf >= a.nan + a.inf ? 'b' : 'a';
  Explanation result;
  result.text =
      fmt::format("{} is {} at {} places where the other side is finite", worse,
                  (worse == 'b' ? b.nan : a.nan) > 0 ? "NaN" : "infinite", diff.nonfinite_mismatch);
  if (!rows.empty())
    result.text += fmt::format(", in {} {}{}", it.run.activations ? "tokens" : "rows",
                               ranges_text(rows), whole_rows == rows.size() ? " (whole)" : "");
  result.parameters = {{"count", static_cast<double>(diff.nonfinite_mismatch)}, {"rows", rows}};
  result.after = it.before;
  result.settled = true;
  result.confidence = 1;
  return result;
}

}  // namespace

constinit const Diagnosis diagnoses::nonfinite = {
    .code = "nonfinite",
    .question = "Is one side NaN or infinite where the other is finite?",
    .explains = "overflow, division by zero, masked rows, memory never written",
    .examine = examine,
};

}  // namespace tensordiff
