// A module that is called several times has one entry in a dump by hooks: where it was called
// first, with what it gave last.

#pragma once

#include <vector>

#include "diagnose/site.h"

namespace tensordiff {

// Puts such entries where their values were computed, as far as A's values tell: just before the
// container that gives the same, or behind the step of which they are a function. The sites stand
// in the order of capture.
void move_last_calls(std::vector<Site>& sites);

}  // namespace tensordiff
