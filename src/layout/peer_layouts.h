// How the pairs of a run are laid out whose values tell it, for those whose values do not.

#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "align/aligner.h"
#include "match/matcher.h"
#include "tensor/catalog.h"

namespace tensordiff {

class PeerLayouts {
 public:
  // All three outlive it.
  PeerLayouts(const Catalog& a, const Catalog& b, const Matching& matching);

  // How pairs akin to this one are brought to one layout, the nearest kin first: the same step of
  // any layer, the same shapes, as many axes. From any thread.
  std::vector<Plan> plans_for(const Pair& which, const AlignOptions& options);

 private:
  struct Group {
    std::vector<const Pair*> first;  // A few: those before a mistake are the likeliest to tell.
    bool asked = false;
    std::optional<Plan> plan;
  };

  std::vector<std::string> keys_of(const Pair& pair) const;
  std::optional<Plan> confirmed_plan(const Group& group, const AlignOptions& options) const;

  const Catalog& a_;
  const Catalog& b_;
  const Matching& matching_;
  std::mutex mutex_;
  std::map<std::string, Group> groups_;  // Filled when the first pair asks.
};

}  // namespace tensordiff
