// Whether the updates of a training run die down, turn around or run away: the rule that
// convergence_analysis and the trend of several checkpoints share.

#pragma once

#include <span>
#include <string_view>

namespace tensordiff {

// Of one run, in the order of its checkpoints.
struct Updates {
  std::span<const double> sizes;    // ‖update‖ / ‖weights before it‖ of each.
  std::span<const double> cosines;  // Between each and the next; may be empty: not known.
  bool broken = false;              // Weights became NaN or infinite.
  double growth = 1;                // ‖last‖ / ‖first‖ of the weights.
};

inline constexpr double kConvergedSize = 1e-4;  // Less than float32 weights need to be retrained.
inline constexpr double kStableSize = 1e-2;     // One part in a hundred between checkpoints.
inline constexpr double kOscillatingCosine = -0.5;  // Most of a step is taken back by the next.
inline constexpr double kDivergingGrowth = 2;       // The weights as a whole doubled,
inline constexpr double kGrowingUpdates = 2;        // or each update is twice the one before.

// "diverging", "converged", "oscillating", "stable" or "moving": the first that applies.
std::string_view convergence_of(const Updates& updates);

}  // namespace tensordiff
