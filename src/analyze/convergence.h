// Whether the updates of a training run die down, turn around or run away: the rule that
// convergence_analysis and the trend of several checkpoints share.

#pragma once

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
};

// The first that applies; unknown without an update.
enum class Course { diverging, unknown, converged, oscillating, converging, stable, moving };
std::string_view name_of(Course course);

struct Convergence {
  Course course = Course::unknown;
  std::string reason;
};
Convergence judge_convergence(const Updates& updates);

}  // namespace tensordiff
