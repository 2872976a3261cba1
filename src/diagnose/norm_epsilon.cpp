// The other epsilon in a norm: each token is off by a factor of its own near 1.
//
// A norm gives w · x / sqrt(v + eps) + β with v the variance of the token, so another eps leaves
// b − β = f · (a − β) with f = sqrt((v + eps_a) / (v + eps_b)): on one side of 1 for all tokens,
// and farther from it where v is small. β, zero for RMS norms, is not in the dumps; f and β are
// found by turns, each the least-squares answer to the other.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "diagnose/diagnosis.h"
#include "diagnose/fit.h"

namespace tensordiff {
namespace {

constexpr int kTurns = 300;  // Each shrinks what is left by half where β is small, by less else.
constexpr double kSettled = 0.999;  // A turn that leaves more than this of it is the last.
constexpr uint64_t kTokensMin = 4;

struct NormFit {
  std::vector<double> excess;  // f − 1, for each token.
  std::vector<double> shift;   // β
};

bool is_norm(Role role) {
  return role == Role::attention_norm || role == Role::mlp_norm || role == Role::final_norm;
}

void fit_excess(const Case& it, NormFit& fit) {
  for (uint64_t row = 0; row < it.a.rows(); ++row) {
    double top = 0, bottom = 0;
    for (uint64_t i = 0; i < it.a.features; ++i) {
      const double base = it.a.row(row)[i] - fit.shift[i];
      top += base * (it.b.row(row)[i] - it.a.row(row)[i]);
      bottom += base * base;
    }
    fit.excess[row] = bottom > 0 ? top / bottom : 0;
  }
}

void fit_shift(const Case& it, NormFit& fit) {
  double weight = 0;
  for (const double excess : fit.excess) weight += excess * excess;
  if (weight == 0) return;
  std::ranges::fill(fit.shift, 0.0);
  for (uint64_t row = 0; row < it.a.rows(); ++row) {
    const double excess = fit.excess[row];
    for (uint64_t i = 0; i < it.a.features; ++i) {
      const double x = it.a.row(row)[i], y = it.b.row(row)[i];
      fit.shift[i] += excess * (excess * x - (y - x)) / weight;
    }
  }
}

double left_after(const Case& it, const NormFit& fit) {
  return left_by(it, filled(it.a, [&](uint64_t row, uint64_t i) {
                   const double x = it.a.row(row)[i];
                   return x + fit.excess[row] * (x - fit.shift[i]);
                 }));
}

std::optional<Explanation> examine(const Case& it) {
  if (!is_norm(it.site.role) || it.a.rows() < kTokensMin || it.a.features < 2) return std::nullopt;
  NormFit fit{std::vector<double>(it.a.rows()), std::vector<double>(it.a.features)};
  fit_excess(it, fit);
  Explanation result;
  result.after = left_after(it, fit);
  for (int turn = 0; turn < kTurns; ++turn) {
    fit_shift(it, fit);
    fit_excess(it, fit);
    const double after = left_after(it, fit);
    const bool settled = after > kSettled * result.after;
    result.after = std::min(after, result.after);
    if (settled) break;
  }
  const auto [least, most] = std::ranges::minmax(fit.excess);
  const double size = std::max(std::abs(least), std::abs(most));
  // Rounding may push one token over to the other side of 1, but not far; and a factor that all
  // tokens share, or one far from 1, is a scale.
  const bool one_side = std::max(-least, 0.0) < 0.05 * size || std::max(most, 0.0) < 0.05 * size;
  if (!one_side || size > 0.9 || most - least < 0.02 * size) return std::nullopt;
  result.text = fmt::format(
      "each token of the norm is off by a factor of its own, {} to {}: another epsilon{}",
      human_number(1 + least), human_number(1 + most),
      std::abs(most) > std::abs(least) ? " (smaller in b)" : " (larger in b)");
  result.parameters = {{"factor_min", 1 + least}, {"factor_max", 1 + most}};
  return result;
}

}  // namespace

constinit const Diagnosis diagnoses::norm_epsilon = {
    .code = "norm_epsilon",
    .question = "Does a norm use another epsilon?",
    .explains = "a wrong or missing epsilon in LayerNorm or RMSNorm",
    .examine = examine,
};

}  // namespace tensordiff
