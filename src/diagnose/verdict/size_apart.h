// A step that is larger or smaller in b than in a, as it is in no other layer.
//
// Long behind a mistake the values of b have nothing in common with those of a any more. How large
// they are still has: what comes in was normalised, and the weights are the same.

#pragma once

#include "diagnose/hypotheses/diagnosis.h"

namespace tensordiff {

// Whether the sizes alone speak for it: neither other layers nor what comes in have as much of it.
bool may_be_apart(const Run& run, const Site& site);

// The factor between the sizes, where most tokens have it.
std::optional<Explanation> size_apart(const Case& it);

}  // namespace tensordiff
