// How many sequences and tokens the tensors of a run have, and on which axes.

#pragma once

#include "diagnose/site.h"

namespace tensordiff {

Extent extent_of(const std::vector<Site>& sites);

}  // namespace tensordiff
