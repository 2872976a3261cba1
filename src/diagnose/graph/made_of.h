// How A makes a step of earlier ones, where its values alone tell: a sum of them, a function of one
// or of a sum, or a product.
//
// Such a step needs neither weights nor a name that is understood. What A's way makes of B's own
// inputs is what B must hold, however far these are from A's.

#pragma once

#include <vector>

#include "diagnose/site.h"

namespace tensordiff {

// Sets made_of of each site; they stand in the order of computing.
void find_made_of(std::vector<Site>& sites);

}  // namespace tensordiff
