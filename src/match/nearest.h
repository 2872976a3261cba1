// What a tensor without a partner may have been meant for.

#pragma once

#include "match/matcher.h"

namespace tensordiff {

// Says of each what tensor of the other side is nearest to it: by the words of the names, then by
// their numbers, and where no word is the same, by the shape.
void find_nearest(const Catalog& own, const Catalog& other, std::vector<Leftover>& leftovers);

}  // namespace tensordiff
