// The two views of one pair as they are compared: what the matcher paired, brought to one layout.

#pragma once

#include "pipeline.h"

namespace tensordiff {

// Both sides, with what all pairs together tell of their ranks.
struct Sides {
  Sides(const Catalog& side_a, const Catalog& side_b, const Matching& matching);

  const Catalog& a;
  const Catalog& b;
  // Whether some tensor lies in pieces on all ranks: no rank repeats another one then, but that
  // neighbours may share the heads of keys and values that are too few for them.
  bool all_ranks = false;
};

Result<AlignedPair> aligned_views(const Sides& sides, const Pair& which, const Request& request);

}  // namespace tensordiff
