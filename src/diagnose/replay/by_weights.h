// Which steps do something else than the given weights, however near to a they come out.

#pragma once

#include <vector>

#include "diagnose/site.h"

namespace tensordiff {

// For each site; none where no weights are given. What b's own inputs and the weights make of a
// step tells in the noise of narrow types, too.
std::vector<bool> against_weights(const Run& run);

// How many steps multiply by a weight, and for how many of these one that fits was given.
struct WeightUse {
  std::size_t usable = 0, steps = 0;
};
WeightUse weight_use(const Run& run);

}  // namespace tensordiff
