// What a series of updates comes to, by rules that a person can check. One update says how large it
// is and no more, unless a loss or the number of steps is stored; it takes two to say whether they
// shrink, and three to say that the last one ran away.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "analyze/convergence.h"
#include "base/text.h"

namespace tensordiff {
namespace {

constexpr double kDivergingGrowth = 2;  // The weights as a whole doubled,
constexpr double kFaster = 2;           // or the last update is twice the middle of those before.
constexpr double kConverged = 1e-4;     // Less than float32 weights need to be retrained.
constexpr double kUndone = -0.3;    // Cosine at which steps take back a good part of each other.
constexpr double kSlower = 0.5;     // The last update against the first.
constexpr double kStable = 1e-2;    // One part in a hundred between checkpoints.
constexpr double kWorse = 0.05;     // Losses of single batches differ by a few per cent.
constexpr double kFlat = 1e-3;      // A loss that moves by less than a thousandth stands still.
constexpr double kManySteps = 100;  // That leave the weights where they are: no single small step.

double median(std::span<const double> numbers) {
  std::vector<double> values(numbers.begin(), numbers.end());
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// How the last measure stands against the best and the first before it, as shares: above 0 worse.
struct Measured {
  double against_best = 0, against_first = 0;
  std::string text;
};
std::optional<Measured> measured(const Updates& updates) {
  const std::span<const double> all = updates.measures;
  if (all.size() < 2) return std::nullopt;
  const double sign = updates.smaller_is_better ? 1 : -1;
  double best = all[0];
  for (const double each : all.first(all.size() - 1))
    if (sign * each < sign * best) best = each;
  const auto worse_than = [&](double other) {
    const double size = std::max({std::abs(other), std::abs(all.back()), 1e-300});
    return sign * (all.back() - other) / size;
  };
  return Measured{
      worse_than(best), worse_than(all[0]),
      fmt::format("the stored {} went from {} to {}", updates.smaller_is_better ? "loss" : "score",
                  human_number(all[0]), human_number(all.back()))};
}

// What one update and what is stored with it tell.
Convergence judge_one(const Updates& updates, const std::optional<Measured>& measure) {
  const double size = updates.sizes.back();
  const std::string moved = fmt::format("the update is {} of the weights", human_number(size));
  if (!updates.cosines.empty() && median(updates.cosines) < kUndone)
    return {Course::oscillating, fmt::format("the momentum turned around: cosine {}",
                                             human_number(median(updates.cosines)))};
  if (measure && measure->against_first < -kFlat) return {Course::improving, measure->text};
  if (measure && updates.steps && *updates.steps < kManySteps)
    return {Course::unknown,
            fmt::format("{}, after only {} {}", measure->text, human_number(*updates.steps),
                        *updates.steps == 1 ? "step" : "steps")};
  if (measure && size <= kStable)
    return {Course::converged, fmt::format("{}, and {}", measure->text, moved)};
  if (measure) return {Course::moving, fmt::format("{}, and {}", measure->text, moved)};
  if (size <= kConverged && updates.steps.value_or(0) >= kManySteps)
    return {Course::converged, fmt::format("{} in {} steps", moved, human_number(*updates.steps))};
  return {Course::unknown, moved + ": without a stored loss, one update does not show a trend"};
}

}  // namespace

std::string_view name_of(Course course) {
  constexpr std::string_view kNames[] = {"diverging", "worsening",   "unknown",
                                         "converged", "oscillating", "converging",
                                         "improving", "stable",      "moving"};
  return kNames[static_cast<std::size_t>(course)];
}

Convergence judge_convergence(const Updates& updates) {
  const std::span<const double> sizes = updates.sizes;
  if (updates.broken) return {Course::diverging, "some weights are no longer finite"};
  if (updates.growth >= kDivergingGrowth)
    return {Course::diverging,
            fmt::format("the weights are {} times as large", human_number(updates.growth))};
  if (updates.measures.size() > 1 && !std::isfinite(updates.measures.back()))
    return {Course::diverging, "the stored loss is NaN or infinite"};
  const std::optional<Measured> measure = measured(updates);
  if (measure && measure->against_best > kWorse) return {Course::worsening, measure->text};
  if (sizes.empty()) return {Course::unknown, "no update: that takes two checkpoints"};
  if (sizes.size() == 1) return judge_one(updates, measure);

  const double last = sizes.back();
  std::string reason = fmt::format("the last update is {} of the weights", human_number(last));
  const std::span<const double> before = sizes.first(sizes.size() - 1);
  const double earlier = before.empty() ? last : median(before);
  if (!before.empty()) reason += fmt::format(", those before {}", human_number(earlier));
  if (before.size() >= 2 && last > kFaster * earlier && last > before.back())
    return {Course::diverging, reason};
  if (last <= kConverged) return {Course::converged, reason};
  if (!updates.cosines.empty() && median(updates.cosines) < kUndone)
    return {Course::oscillating, fmt::format("successive updates cancel each other: cosine {}",
                                             human_number(median(updates.cosines)))};
  if (!before.empty() && last <= kSlower * sizes.front() && last <= earlier)
    return {Course::converging, reason};
  return {last <= kStable ? Course::stable : Course::moving, reason};
}

}  // namespace tensordiff
