// The two views of one pair as they are compared: what the matcher paired, brought to one layout.

#pragma once

#include <memory>

#include "peer_layouts.h"
#include "pipeline.h"

namespace tensordiff {

// Both sides, with what all pairs together tell of their ranks.
struct Sides {
  const Catalog& a;
  const Catalog& b;
  const Matching& matching;
  // Whether some tensor lies in pieces on all ranks: no rank repeats another one then, but that
  // neighbours may share the heads of keys and values that are too few for them.
  bool all_ranks = false;
  std::shared_ptr<PeerLayouts> peers;
};

// Reads values of some pairs, unless only shapes are compared.
Sides sides_of(const Catalog& a, const Catalog& b, const Matching& matching,
               const Request& request);

Result<AlignedPair> aligned_views(const Sides& sides, const Pair& which, const Request& request);

}  // namespace tensordiff
