// The ranks of a tensor parallel run, found in the names of its tensors.

#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "tensor/catalog.h"

namespace tensordiff {

struct RankGroups {
  uint64_t ranks = 1;
  std::vector<std::string> notes;
};

// Makes one tensor of what several ranks hold under one name: its shards, by rank. Stages of a
// pipeline are joined. A catalog whose names speak of fewer than two of either stays as it is.
// `side` is for the notes.
RankGroups group_ranks(Catalog& catalog, char side);

}  // namespace tensordiff
