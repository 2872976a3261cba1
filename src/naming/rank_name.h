// The process of a parallel run that a name speaks of.
//
// A rank stands in a name as a word of its own with a number: rank_0, rank0, tp_rank_00,
// mp_rank_00_000 (of which the second number is the stage of a pipeline), model-rank-3. Words that
// say tensor parallel come first, then a plain rank or a data parallel one. Other kinds of ranks
// (ep, cp) hold other experts or tokens, and are part of the name.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tensordiff {

// What a name says of the rank it comes from: "rank_1/0_query", "model-rank-1/w", "0_query_rank1".
struct RankName {
  std::string rest;  // The name without it.
  uint64_t rank = 0;
};
std::optional<RankName> parse_rank(std::string_view name);
// The same for the stage of a pipeline: "pp_rank_1/w", "pp1/w".
std::optional<RankName> parse_stage(std::string_view name);

}  // namespace tensordiff
