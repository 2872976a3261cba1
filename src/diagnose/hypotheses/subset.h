// Two outputs of other sizes, where one holds a part of the other: every second position, as a
// stride leaves it, or some of its rows.

#pragma once

#include "diagnose/graph/lone.h"
#include "diagnose/verdict/explain.h"

namespace tensordiff {

// Fills in the finding of a pair that has no common layout, where that is so.
void explain_subset(const LoneTensors& lone, const Site& site, Told& told);

}  // namespace tensordiff
