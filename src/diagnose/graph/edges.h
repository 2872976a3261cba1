// Which steps feed which.

#pragma once

#include <map>
#include <string>
#include <vector>

#include "diagnose/site.h"

namespace tensordiff {

// What feeds a step of this role, each as alternatives of which the first that is there counts.
std::vector<std::vector<Role>> sources_of(Role role);

// Notes what a trace says each tensor of A was computed from, by names. The inputs of a site are
// numbers of pairs until find_inputs() has run.
void note_inputs(const std::map<std::string, std::vector<std::string>>& recorded,
                 std::vector<Site>& sites);

// Sets the inputs of all sites, which stand in the order of computing: those that were noted, and
// guesses from names, roles and values for the others.
void find_inputs(std::vector<Site>& sites);

// Sets copy_of: the last site before each that holds the same in A.
void find_copies(std::vector<Site>& sites);

}  // namespace tensordiff
