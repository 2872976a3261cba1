// Whether the updates of a training run die down, turn around or run away: the rule that
// convergence_analysis and the trend of several checkpoints share.

#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tensordiff {

// Of one run, in the order of its checkpoints.
struct Updates {
  std::span<const double> sizes;    // ‖update‖ / ‖weights before it‖ of each.
  std::span<const double> cosines;  // Between each and the next; may be empty: not known.
  bool broken = false;              // Weights became NaN or infinite.
  double growth = 1;                // ‖last‖ / ‖first‖ of the weights.
  // A loss or score that the checkpoints store, first to last; fewer than two: not known.
  std::span<const double> measures = {};
  bool smaller_is_better = true;
  std::optional<double> steps = {};  // Of the optimizer, over the last update.
};

// The first that applies. One update alone is unknown, unless a stored loss or the steps tell.
enum class Course {
  diverging,
  worsening,  // The stored loss rises.
  unknown,
  converged,
  oscillating,
  converging,
  improving,  // The stored loss falls.
  stable,
  moving,
};
std::string_view name_of(Course course);

struct Convergence {
  Course course = Course::unknown;
  std::string reason;
};
Convergence judge_convergence(const Updates& updates);

}  // namespace tensordiff
