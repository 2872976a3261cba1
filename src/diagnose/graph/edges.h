// Which steps feed which.

#pragma once

#include <vector>

#include "diagnose/site.h"

namespace tensordiff {

// What feeds a step of this role, each as alternatives of which the first that is there counts.
std::vector<std::vector<Role>> sources_of(Role role);

// Sets the inputs of all sites, which stand in the order of computing.
void find_inputs(std::vector<Site>& sites);

// Sets copy_of: the last site before each that holds the same in A.
void find_copies(std::vector<Site>& sites);

}  // namespace tensordiff
