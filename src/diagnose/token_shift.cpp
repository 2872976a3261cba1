// Token t of b is token t − k of a: an off-by-one in positions, a cache slot, a shifted label.
//
// Each sequence is shifted by up to kShiftMax either way; what has no partner, at the ends, does
// not count.

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "diagnose/diagnosis.h"
#include "diagnose/fit.h"

namespace tensordiff {
namespace {

constexpr int64_t kShiftMax = 16;
constexpr uint64_t kTokensMin = 2;  // That must still have a partner.

struct Overlap {
  double left = INFINITY;  // Of the tokens that have a partner.
  bool wraps = false;      // The ends came round from the other end.
};

Overlap shifted_by(const Case& it, int64_t shift) {
  const auto tokens = static_cast<int64_t>(it.a.tokens);
  double gap = 0, all = 0, ends = 0, ends_all = 0;
  for (uint64_t row = 0; row < it.a.rows(); ++row) {
    const int64_t token = static_cast<int64_t>(row) % tokens;
    const int64_t from = token - shift;
    const bool inside = from >= 0 && from < tokens;
    const int64_t source = static_cast<int64_t>(row) - token + (from + tokens) % tokens;
    for (uint64_t i = 0; i < it.a.features; ++i) {
      const double x = it.a.row(static_cast<uint64_t>(source))[i], y = it.b.row(row)[i];
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
  std::optional<Explanation> best;
  if (!it.run.activations) return best;
  int64_t best_shift = 0;
  for (int64_t size = 1; size <= kShiftMax; ++size) {
    if (it.a.tokens < static_cast<uint64_t>(size) + kTokensMin) break;
    for (const int64_t shift : {size, -size}) {
      const Overlap overlap = shifted_by(it, shift);
      if (best && overlap.left >= best->after) continue;
      best = Explanation{};
      best->after = overlap.left;
      best_shift = shift;
      best->text = fmt::format("token t of b is token t {} {} of a{}", shift > 0 ? "−" : "+", size,
                               overlap.wraps ? ", and the ends wrap around" : "");
      best->parameters = {{"shift", static_cast<double>(shift)},
                          {"wraps", std::string(overlap.wraps ? "yes" : "no")}};
    }
  }
  if (best) best->model = shifted(it.a, best_shift);
  return best;
}

}  // namespace

constinit const Diagnosis diagnoses::token_shift = {
    .code = "token_shift",
    .question = "Are the tokens of b those of a, shifted?",
    .explains = "an off-by-one in positions or in the slots of a cache",
    .examine = examine,
};

}  // namespace tensordiff
