// The ranks of a tensor parallel run, found in the names of its tensors.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tensor/catalog.h"

namespace tensordiff {

// What a name says of the rank it comes from: "rank_1/0_query", "model-rank-1/w", "0_query_rank1".
struct RankName {
  std::string rest;  // The name without it.
  uint64_t rank = 0;
};
std::optional<RankName> parse_rank(std::string_view name);
// The same for the stage of a pipeline: "pp_rank_1/w", "pp1/w".
std::optional<RankName> parse_stage(std::string_view name);

struct RankGroups {
  uint64_t ranks = 1;
  std::vector<std::string> notes;
};

// Makes one tensor of what several ranks hold under one name: its shards, by rank. Stages of a
// pipeline are joined. A catalog whose names speak of fewer than two of either stays as it is.
// `side` is for the notes.
RankGroups group_ranks(Catalog& catalog, char side);

}  // namespace tensordiff
