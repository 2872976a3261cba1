// What a tensor without a partner may have been meant for.

#pragma once

#include "match/matcher.h"

namespace tensordiff {

struct OtherSide {
  const Catalog& catalog;
  const std::vector<Leftover>& leftovers;
  double threshold;  // How alike names must be to make a pair.
};

// Says of each what tensor of the other side is nearest to it: by the words of the names, then by
// their numbers, and where no word is the same, by the shape. And why they are no pair.
void find_nearest(const Catalog& own, const OtherSide& other, std::vector<Leftover>& leftovers);

}  // namespace tensordiff
