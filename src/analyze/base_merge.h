// Whether B is a combination of A and other models (--base): coefficients, and how well they fit.
//
//   line    B = M + Σ λᵢ (Xᵢ − M), where X₀ is A, M the first base and the other Xᵢ further bases:
//           a linear merge, an average, a task vector
//   sphere  B on the great circle from M to A, each tensor at its own angle: SLERP
//   taken   B is a base, and not A: layers of two models in one
//   sparse  M, but M + λ (A − M) at some of the elements: DARE, TIES

#pragma once

#include <vector>

#include "analyze/edit.h"

namespace tensordiff {

// Sets the edit of each weight that is such a combination with the coefficients that most have.
void find_merges(const Study& study, std::vector<EditFound>& edits);

}  // namespace tensordiff
