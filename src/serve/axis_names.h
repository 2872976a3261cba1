// What the axes of a pair are, as far as the shapes of its run tell.

#pragma once

#include <string>
#include <vector>

#include "report/report.h"

namespace tensordiff::serve {

// One word for each axis of the shape that a pair was compared in: "batch", "token", "head",
// "hidden"; an empty word where that is not known. Empty for checkpoints.
std::vector<std::string> axis_names(const Report& report, const PairRow& pair);

}  // namespace tensordiff::serve
