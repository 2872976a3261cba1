// NaN or infinite where the other side is not: an overflow, a division by zero, memory that was
// never written. From finite inputs it is the most telling of all differences.

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "diagnose/hypotheses/diagnosis.h"
#include "diagnose/sample/beyond_tokens.h"
#include "diagnose/sample/fit.h"

namespace tensordiff {
namespace {

// The rows that have such elements, and how many have nothing else.
struct Rows {
  std::vector<uint64_t> with;
  uint64_t whole = 0;
};

bool disagree(double a, double b) {
  return !(std::isfinite(a) && std::isfinite(b)) && !(a == b || (std::isnan(a) && std::isnan(b)));
}

// Counts elements that come row by row.
class RowCount {
 public:
  explicit RowCount(uint64_t features) : features_(features) {}

  void add(uint64_t row) {
    if (rows_.with.empty() || rows_.with.back() != row) rows_.with.push_back(row), count_ = 0;
    rows_.whole += ++count_ == features_;
  }
  Rows take() { return std::move(rows_); }

 private:
  uint64_t features_, count_ = 0;
  Rows rows_;
};

// Of the whole tensor; nothing where that is not known.
std::optional<Rows> rows_of(const Case& it) {
  RowCount count(it.a.features);
  if (it.a.whole) {
    for (uint64_t row = 0; row < it.a.rows(); ++row)
      for (uint64_t i = 0; i < it.a.features; ++i)
        if (disagree(it.a.row(row)[i], it.b.row(row)[i])) count.add(row);
    return count.take();
  }
  const std::optional<BeyondTokens> all = beyond_tokens(it);
  if (!all || !all->rows_unread.empty()) return std::nullopt;
  for (const BeyondTokens::Element& each : all->elements)
    if (disagree(each.a, each.b)) count.add(each.row);
  return count.take();
}

std::string counts_text(const Stats& stats) {
  if (stats.nan + stats.inf == 0) return "none";
  if (stats.inf == 0) return fmt::format("{} NaN", human_count(stats.nan));
  if (stats.nan == 0) return fmt::format("{} Inf", human_count(stats.inf));
  return fmt::format("{} NaN and {} Inf", human_count(stats.nan), human_count(stats.inf));
}

// Which side has what. Where the other is finite all over, that is all there is to say.
std::string sides_text(const Stats& a, const Stats& b, uint64_t mismatch) {
  if (a.nan + a.inf == 0) return fmt::format("B has {} where A is finite", counts_text(b));
  if (b.nan + b.inf == 0) return fmt::format("A has {} where B is finite", counts_text(a));
  return fmt::format("NaN/Inf mismatch at {} element{}: A has {}, B has {}", human_count(mismatch),
                     mismatch == 1 ? "" : "s", counts_text(a), counts_text(b));
}

std::optional<Explanation> examine(const Case& it) {
  const Comparison& comparison = it.site.comparison;
  const uint64_t mismatch = comparison.diff.nonfinite_mismatch;
  if (mismatch == 0) return std::nullopt;
  Explanation result;
  result.text = sides_text(comparison.a, comparison.b, mismatch);
  result.parameters = {{"count", static_cast<double>(mismatch)}};
  if (const std::optional<Rows> rows = rows_of(it); rows && !rows->with.empty()) {
    const std::string_view noun = it.run.activations ? "token" : "row";
    result.text +=
        fmt::format(", in {}{} {}{}", noun, rows->with.size() == 1 ? "" : "s",
                    ranges_text(rows->with), rows->whole == rows->with.size() ? " (whole)" : "");
    result.parameters.push_back({"rows", rows->with});
  }
  result.after = it.before;
  result.settled = true;
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
