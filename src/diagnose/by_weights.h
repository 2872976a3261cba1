// Which steps do something else than the given weights, however near to a they come out.

#pragma once

#include <vector>

#include "diagnose/site.h"

namespace tensordiff {

// For each site; none where no weights are given. What b's own inputs and the weights make of a
// step tells in the noise of narrow types, too.
std::vector<bool> against_weights(const Run& run);

}  // namespace tensordiff
