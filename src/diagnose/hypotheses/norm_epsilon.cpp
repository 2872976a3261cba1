// The other epsilon in a norm: each token is off by a factor of its own near 1.
//
// A norm gives w · x / sqrt(v + eps) + β with v the variance of the token, so another eps leaves
// b − β = f · (a − β) with f = sqrt((v + eps_a) / (v + eps_b)): on one side of 1 for all tokens,
// and farther from it where v is small. β, zero for RMS norms, is not in the dumps; f and β are
// found by turns, each the least-squares answer to the other. Where the effect is smaller than the
// rounding of single elements, all tokens shrinking alike still shows it. Where x itself was
// dumped, the norms are computed again from it, which gives both: epsilon_fit.h.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "diagnose/hypotheses/diagnosis.h"
#include "diagnose/noise/norms.h"
#include "diagnose/replay/epsilon_fit.h"
#include "diagnose/sample/fit.h"

namespace tensordiff {
namespace {

constexpr int kTurns = 300;  // Each shrinks what is left by half where β is small, by less else.
constexpr double kSettled = 0.999;  // A turn that leaves more than this of it is the last.
constexpr double kWorkMax = 3e7;    // Values that all turns together walk over.
constexpr uint64_t kTokensMin = 4;

struct NormFit {
  std::vector<double> excess;  // f − 1, for each token.
  std::vector<double> shift;   // β
};

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

Explanation explanation_of(const Case& it, const NormFit& fit) {
  return explained_by(it, filled(it.a, [&](uint64_t row, uint64_t i) {
                        const double x = it.a.row(row)[i];
                        return x + fit.excess[row] * (x - fit.shift[i]);
                      }));
}

Explanation fitted(const Case& it, NormFit& fit) {
  fit_excess(it, fit);
  Explanation best = explanation_of(it, fit);
  const int turns = std::min(kTurns, static_cast<int>(kWorkMax / double(it.a.values.size())));
  for (int turn = 0; turn < turns; ++turn) {
    NormFit next = fit;
    fit_shift(it, next);
    fit_excess(it, next);
    Explanation found = explanation_of(it, next);
    const bool last = found.after > kSettled * best.after;
    if (found.after < best.after) best = std::move(found), fit = std::move(next);
    if (last) break;
  }
  return best;
}

void tell_epsilons(const Case& it, Explanation& result) {
  const Epsilons found = fit_epsilons(it);
  std::string text;
  const auto tell = [&](const std::optional<double>& epsilon, std::string_view side,
                        std::string_view name) {
    if (!epsilon) return;
    text += fmt::format("{}{} in {}", text.empty() ? ": about " : " and ", human_number(*epsilon),
                        side);
    result.parameters.push_back({std::string(name), *epsilon});
  };
  tell(found.a, "A", "epsilon_a");
  tell(found.b, "B", "epsilon_b");
  result.text += text;
}

// Too small to see in single elements. What comes in hides it.
std::optional<Explanation> faint(const Case& it, Explanation result) {
  const std::optional<double> shrink = shared_shrink(it.a, it.b, it.site.roundoff);
  if (!shrink || it.carried > 0 || it.before > it.floor) return std::nullopt;
  result.text = fmt::format(
      "all tokens of the norm are {} % {}, the same for every feature: another epsilon ({} in B)",
      human_number(100 * std::abs(*shrink)), *shrink > 0 ? "larger" : "smaller",
      *shrink > 0 ? "smaller" : "larger");
  result.parameters = {{"factor", 1 + *shrink}};
  result.settled = true;
  return result;
}

std::optional<Explanation> examine(const Case& it) {
  if (!is_norm(it.site.role) || it.a.rows() < kTokensMin || it.a.features < 2) return std::nullopt;
  NormFit fit{std::vector<double>(it.a.rows()), std::vector<double>(it.a.features)};
  Explanation result = fitted(it, fit);
  const auto [least, most] = std::ranges::minmax(fit.excess);
  const double size = std::max(std::abs(least), std::abs(most));
  // Rounding may push one token over to the other side of 1, but not far; and a factor that all
  // tokens share, or one far from 1, is a scale.
  const bool one_side = std::max(-least, 0.0) < 0.05 * size || std::max(most, 0.0) < 0.05 * size;
  // What is subtracted is a bias: not larger than what it is a part of.
  const double typical = it.norm_a / std::sqrt(static_cast<double>(it.a.rows()));
  const bool plausible = norm(fit.shift) <= typical;
  if (!plausible || !one_side || size > 0.9 || most - least < 0.02 * size || !accepted(it, result))
    return faint(it, std::move(result));
  result.text = fmt::format(
      "each token of the norm is off by a factor of its own, {} to {}: another epsilon{}",
      human_number(1 + least), human_number(1 + most),
      std::abs(most) > std::abs(least) ? " (smaller in B)" : " (larger in B)");
  result.parameters = {{"factor_min", 1 + least}, {"factor_max", 1 + most}};
  tell_epsilons(it, result);
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
