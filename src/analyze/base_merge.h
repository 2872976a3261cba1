// Whether B is a combination of A and other models (--base): coefficients, and how well they fit.
//
//   line    B = M + Σ λᵢ (Xᵢ − M), where X₀ is A, M the first base and the other Xᵢ further bases:
//           a linear merge, an average, a task vector
//   sphere  B on the great circle from M to A, each tensor at its own angle: SLERP

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyze/edit.h"

namespace tensordiff {

// One weight that all models have.
struct Combination {
  std::vector<double> weights;       // λ of A and of each base after the first.
  std::optional<double> t;           // Of SLERP, with one base.
  double left = 0, left_sphere = 0;  // Share of ‖B − M‖² that line and sphere do not explain.
};
std::optional<Combination> combination_of(const Row& pair, const std::vector<Catalog>& bases);

// Sets the edit of each weight that is such a combination with the coefficients that most have.
void find_merges(const Study& study, std::vector<EditFound>& edits);

}  // namespace tensordiff
