// Steps whose values lost bits that the same step has in other layers.

#pragma once

#include <vector>

#include "diagnose/site.h"

namespace tensordiff {

// Gives such sites a reason, and the roundoff that is usual there. `of_a` and `of_b` have the bits
// that the values of each site need.
void find_casts(Run& run, std::vector<int> of_a, std::vector<int> of_b);

}  // namespace tensordiff
