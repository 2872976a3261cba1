// Whether the updates of a training run die down, turn around or run away: the rule that
// convergence_analysis and the trend of several checkpoints share.

#pragma once

#include <span>
#include <string>

namespace tensordiff {

// Of one run, in the order of its checkpoints.
struct Updates {
  std::span<const double> sizes;    // ‖update‖ / ‖weights before it‖ of each.
  std::span<const double> cosines;  // Between each and the next; may be empty: not known.
  bool broken = false;              // Weights became NaN or infinite.
  double growth = 1;                // ‖last‖ / ‖first‖ of the weights.
};

// "diverging", "converged", "oscillating", "converging", "stable" or "moving": the first that
// applies, and why. "unknown" without an update.
struct Convergence {
  std::string verdict;
  std::string reason;
};
Convergence judge_convergence(const Updates& updates);

}  // namespace tensordiff
