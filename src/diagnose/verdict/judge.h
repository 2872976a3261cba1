// Tells rounding from mistakes, step by step.
//
// Rounding leaves an error that is as small as a few units in the last place where it is made,
// grows from step to step by a modest factor, and has no structure. So a step is judged by the
// error of its output against the error of its inputs:
//
//   budget = kGrowth · (largest error of an input) + kSteps · (unit roundoff of the coarser side)
//
// in the relative L2 norm. Beyond the budget the step made an error of its own. Within it, an error
// that stands out of its inputs is still no noise where a few elements hold it, or where it is one
// factor for each token or one offset for each feature: rounding is none of these.

#pragma once

#include "diagnose/site.h"

namespace tensordiff {

// Fills error, budget, verdict, created and reason of every site, in execution order.
void judge(Run& run);

}  // namespace tensordiff
