// What each rank holds of one tensor, cut out of what it is fused with.

#pragma once

#include "align/aligner.h"

namespace tensordiff {

using Shards = std::vector<View>;

// Shards of one section along one axis, with what was done to each of them.
struct Cut {
  Shards shards;
  Plan steps;
  bool guess = false;
  std::optional<std::size_t> axis = std::nullopt;  // The only one they are put together along.
};

// All the ways to cut, the likeliest first; one that cuts nothing where it is a tensor of its own.
std::vector<Cut> cuts_of(char side, const Operand& operand);

}  // namespace tensordiff
