// What the names of steps tell.

#pragma once

#include "tensor/place.h"

namespace tensordiff {

// What a step computes, by the place that its name gives it; nothing where that is not told.
// Weights compute nothing.
Role computed_at(const Place& place);

}  // namespace tensordiff
