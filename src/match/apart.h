// Pairs that the user took apart.

#pragma once

#include <vector>

#include "match/matcher.h"
#include "match/pairs_file.h"

namespace tensordiff {

// Both tensors of each of these pairs have no partner then.
void take_apart(const std::vector<NamePair>& apart, const Catalog& a, const Catalog& b,
                Matching& matching);

}  // namespace tensordiff
