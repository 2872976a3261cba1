#include "diagnose/replay/norm_size.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/text.h"
#include "diagnose/limits.h"
#include "diagnose/replay/norm_gain.h"
#include "diagnose/sample/fit.h"

namespace tensordiff {
namespace {

constexpr uint64_t kTokensMin = 6;
constexpr double kUnit = 0.05;          // How far from 1 the mean square of a norm's tokens may be.
constexpr double kRoundoffsMin = 0.25;  // What rounding all values the same way makes, or so.
// What another weight leaves of it, where that is the one.
constexpr double kClearlyBetter = 0.2;
constexpr double kAllAlike = 0.02;  // Of a deficit that is a factor of all tokens.
// The stream of b may be so much smaller than a's, and epsilon take off the more.
constexpr double kEpsilonsApart = 30;

// 1 − mean(((y − β) / w)²), over all tokens.
struct Deficit {
  double mean = 0, deviation = 0;
  double least = 0;     // Of one token.
  double positive = 0;  // Share of the tokens.
  double error = 0;     // Of the mean.

  double size() const { return std::abs(mean) + deviation; }
};

Deficit deficit_of(const Matrix& y, const NormGain& gain) {
  const Matrix unit = without_gain(y, gain);
  std::vector<double> each;
  for (uint64_t row = 0; row < unit.rows(); ++row) {
    const double size = norm(unit.row(row));
    each.push_back(1 - size * size / static_cast<double>(unit.features));
  }
  const auto count = static_cast<double>(each.size());
  Deficit result;
  result.mean = std::accumulate(each.begin(), each.end(), 0.0) / count;
  for (const double value : each) {
    result.deviation += (value - result.mean) * (value - result.mean) / count;
    result.positive += (value > 0 ? 1 : 0) / count;
  }
  result.least = *std::ranges::min_element(each);
  result.deviation = std::sqrt(result.deviation);
  result.error = result.deviation / std::sqrt(count);
  return result;
}

Explanation told(std::string text, double before, double after) {
  Explanation result;
  result.text = std::move(text);
  result.before = before;
  result.after = after;
  result.settled = true;
  return result;
}

std::optional<NormMistake> wrong_weight(const Case& it, const NormGain& stored, const GainWay& of_a,
                                        const Deficit& before) {
  for (const GainWay& way : ways_of_mistakes()) {
    const Deficit after = deficit_of(it.b, in_way(stored, way));
    if (&way == &of_a || !(after.size() < std::min(kUnit, kClearlyBetter * before.size())))
      continue;
    return NormMistake{&diagnoses::norm_weight,
                       told(fmt::format("B multiplies by {}, A by {}", way.text, of_a.text),
                            before.size(), after.size())};
  }
  return std::nullopt;
}

// A deficit that all tokens share is a factor; one that they do not is epsilon.
std::optional<NormMistake> wrong_factor(const Deficit& a, const Deficit& b, double roundoff) {
  const double apart = b.mean - a.mean, before = std::abs(apart) / 2;
  const double noise = limits::kSigmas * std::hypot(a.error, b.error);
  const bool larger = apart > 0;
  const Deficit &most = larger ? b : a, &least = larger ? a : b;
  // Epsilon takes more off some tokens than off others, but something off all.
  const bool stands_out =
      std::abs(apart) > noise || most.least > least.mean + limits::kSigmas * least.deviation;
  if (!stands_out || std::abs(apart) <= kRoundoffsMin * roundoff || b.mean >= 1)
    return std::nullopt;
  if (b.deviation <= kAllAlike * std::abs(b.mean)) {
    if (std::abs(apart) <= roundoff) return std::nullopt;
    const double factor = std::sqrt((1 - b.mean) / (1 - a.mean));
    NormMistake scaled{&diagnoses::scale,
                       told(fmt::format("B = {} × A, whatever its inputs: a norm sets its own size",
                                        human_number(factor)),
                            before, b.deviation / 2)};
    scaled.explanation.parameters = {{"factor", factor}};
    return scaled;
  }
  if (most.positive < limits::kOneSide || most.mean < kEpsilonsApart * std::abs(least.mean))
    return std::nullopt;
  return NormMistake{
      &diagnoses::norm_epsilon,
      told(fmt::format("the tokens of the norm are {} % {} than its weight makes them, each by a "
                       "factor of its own: another epsilon ({} in B)",
                       human_number(50 * std::abs(apart)), larger ? "smaller" : "larger",
                       larger ? "larger" : "smaller"),
           before, noise / 2)};
}

}  // namespace

std::optional<NormMistake> wrong_size(const Case& it) {
  const std::optional<NormGain> stored = stored_gain(it.run, it.site);
  if (!stored || it.a.rows() < kTokensMin || !same_form(it.a, it.b)) return std::nullopt;
  const GainWay* way = nullptr;
  Deficit a;
  for (const GainWay& each : ways_of_models()) {
    const Deficit found = deficit_of(it.a, in_way(*stored, each));
    if (found.size() < (way ? a.size() : kUnit)) way = &each, a = found;
  }
  if (!way) return std::nullopt;
  const Deficit b = deficit_of(it.b, in_way(*stored, *way));
  if (!std::isfinite(b.size())) return std::nullopt;
  if (auto found = wrong_weight(it, *stored, *way, b)) return found;
  return wrong_factor(a, b, it.site.roundoff);
}

}  // namespace tensordiff
