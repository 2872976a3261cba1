// Token t of b is token t − k of a: an off-by-one in positions, a cache slot, a shifted label.
//
// Each sequence is shifted by up to kShiftMax either way; what has no partner, at the ends, does
// not count.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "diagnose/hypotheses/diagnosis.h"
#include "diagnose/sample/fit.h"

namespace tensordiff {
namespace {

constexpr int64_t kShiftMax = 16;
constexpr uint64_t kTokensMin = 2;          // That must still have a partner.
constexpr uint64_t kFeaturesLookedAt = 16;  // To tell which shift it is.

struct Overlap {
  double left = INFINITY;  // Of the tokens that have a partner.
  bool wraps = false;      // The ends came round from the other end.
};

// What is left of `to` as the tokens of `of`, shifted; by every so many features.
Overlap shifted_by(const Matrix& of, const Matrix& to, int64_t shift, uint64_t every) {
  const auto tokens = static_cast<int64_t>(of.tokens);
  double gap = 0, all = 0, ends = 0, ends_all = 0;
  for (uint64_t row = 0; row < of.rows(); ++row) {
    const int64_t token = static_cast<int64_t>(row) % tokens;
    const int64_t from = token - shift;
    const bool inside = from >= 0 && from < tokens;
    const int64_t source = static_cast<int64_t>(row) - token + (from + tokens) % tokens;
    const auto before = of.row(static_cast<uint64_t>(source)), after = to.row(row);
    for (uint64_t i = 0; i < of.features; i += every) {
      const double x = before[i], y = after[i];
      if (!std::isfinite(x) || !std::isfinite(y)) continue;
      (inside ? gap : ends) += (y - x) * (y - x);
      (inside ? all : ends_all) += x * x;
    }
  }
  if (all == 0) return {};
  return {std::sqrt(gap / all), ends <= gap + 1e-4 * ends_all};
}

// a, shifted; not a number where a token has no partner.
Matrix shifted(const Matrix& a, int64_t shift) {
  const auto tokens = static_cast<int64_t>(a.tokens);
  return filled(a, [&](uint64_t row, uint64_t i) {
    const int64_t from = static_cast<int64_t>(row) % tokens - shift;
    return from < 0 || from >= tokens
               ? std::numeric_limits<double>::quiet_NaN()
               : a.row(static_cast<uint64_t>(static_cast<int64_t>(row) - shift))[i];
  });
}

std::optional<Explanation> examine(const Case& it) {
  if (!it.run.activations || it.a.tokens < 1 + kTokensMin) return std::nullopt;
  const uint64_t every = std::max<uint64_t>(1, it.a.features / kFeaturesLookedAt);
  double least = INFINITY;
  int64_t best = 1;
  for (int64_t size = 1; size <= kShiftMax; ++size) {
    if (it.a.tokens < static_cast<uint64_t>(size) + kTokensMin) break;
    for (const int64_t shift : {size, -size}) {
      const double left = shifted_by(it.a, it.b, shift, every).left;
      if (left < least) least = left, best = shift;
    }
  }
  const Overlap overlap = shifted_by(it.a, it.b, best, 1);
  // Where B's own tokens are as alike at that distance, as where one row stands for all, nothing
  // shows that they were moved.
  if (shifted_by(it.b, it.b, best, 1).left <= overlap.left) return std::nullopt;
  Explanation result;
  result.after = overlap.left;
  result.text = fmt::format("token t of B is token t {} {} of A{}", best > 0 ? "−" : "+",
                            std::abs(best), overlap.wraps ? ", and the ends wrap around" : "");
  result.parameters = {{"shift", static_cast<double>(best)},
                       {"wraps", std::string(overlap.wraps ? "yes" : "no")}};
  result.model = shifted(it.a, best);
  return result;
}

}  // namespace

constinit const Diagnosis diagnoses::token_shift = {
    .code = "token_shift",
    .question = "Are B's tokens those of A, shifted?",
    .explains = "an off-by-one in positions or in the slots of a cache",
    .examine = examine,
};

}  // namespace tensordiff
