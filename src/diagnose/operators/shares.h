// How much of each input feature a projection multiplies.

#pragma once

#include <optional>
#include <vector>

#include "diagnose/operators/operator.h"

namespace tensordiff::operators {

// The s that leave least of y − p − Σ s_j·x_j·w_j, with x by rows and w by the columns of y.
// Nothing where they are not determined.
std::optional<std::vector<double>> solve_shares(const Block& x, const Block& w, const Block& y,
                                                const Block& p);

}  // namespace tensordiff::operators
