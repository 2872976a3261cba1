// What a series of updates comes to, by rules that a person can check. One update says how large it
// is; it takes two to say whether they shrink, and three to say that the last one ran away.

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "analyze/convergence.h"
#include "base/text.h"

namespace tensordiff {
namespace {

constexpr double kDivergingGrowth = 2;  // The weights as a whole doubled,
constexpr double kFaster = 2;           // or the last update is twice the middle of those before.
constexpr double kConverged = 1e-4;     // Less than float32 weights need to be retrained.
constexpr double kUndone = -0.3;  // Cosine at which steps take back a good part of each other.
constexpr double kSlower = 0.5;   // The last update against the first.
constexpr double kStable = 1e-2;  // One part in a hundred between checkpoints.

double median(std::span<const double> numbers) {
  std::vector<double> values(numbers.begin(), numbers.end());
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

std::string_view name_of(Course course) {
  constexpr std::string_view kNames[] = {"diverging",  "unknown", "converged", "oscillating",
                                         "converging", "stable",  "moving"};
  return kNames[static_cast<std::size_t>(course)];
}

Convergence judge_convergence(const Updates& updates) {
  const std::span<const double> sizes = updates.sizes;
  if (updates.broken) return {Course::diverging, "there are weights that are not finite any more"};
  if (updates.growth >= kDivergingGrowth)
    return {Course::diverging,
            fmt::format("the weights are {} times as large", human_number(updates.growth))};
  if (sizes.empty()) return {Course::unknown, "no update: that takes two checkpoints"};

  const double last = sizes.back();
  std::string reason = fmt::format("the last update is {} of the weights", human_number(last));
  const std::span<const double> before = sizes.first(sizes.size() - 1);
  const double earlier = before.empty() ? last : median(before);
  if (!before.empty()) reason += fmt::format(", those before {}", human_number(earlier));
  if (before.size() >= 2 && last > kFaster * earlier && last > before.back())
    return {Course::diverging, reason};
  if (last <= kConverged) return {Course::converged, reason};
  if (!updates.cosines.empty() && median(updates.cosines) < kUndone)
    return {Course::oscillating, fmt::format("successive updates take each other back: cosine {}",
                                             human_number(median(updates.cosines)))};
  if (!before.empty() && last <= kSlower * sizes.front() && last <= earlier)
    return {Course::converging, reason};
  return {last <= kStable ? Course::stable : Course::moving, reason};
}

}  // namespace tensordiff
