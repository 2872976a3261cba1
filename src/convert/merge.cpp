#include "convert/merge.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/side.h"
#include "base/text.h"
#include "convert/merge_parts.h"
#include "match/checkpoint.h"

namespace tensordiff {
namespace {

MergeSide side_of(char side, const Catalog& own, const Catalog& other, const Matching& matching) {
  MergeSide result{side, own, other, {}, std::vector<bool>(own.tensors.size(), false)};
  for (const Pair& pair : matching.pairs)
    if (!pair.section_a && !pair.section_b &&
        own.tensors[side == 'a' ? pair.a : pair.b].shards.empty())
      result.partner.emplace(side == 'a' ? pair.a : pair.b, side == 'a' ? pair.b : pair.a);
  for (const Leftover& left : side == 'a' ? matching.only_a : matching.only_b)
    result.is_free[left.tensor] = true;
  return result;
}

MergesOf without_parts(const WaysOf& ways) {
  MergesOf merges;
  for (const auto& [tensor, all] : ways)
    for (const MergeWay& way : all) merges[tensor].push_back(way.merged);
  return merges;
}

// Gives a bias of the other side the partner that makes it, whatever names made of them before.
void pair_bias(char side, const FoldedBias& bias, Matching& matching) {
  const std::size_t a = side == 'a' ? bias.own : bias.other;
  const std::size_t b = side == 'a' ? bias.other : bias.own;
  const auto is_it = [&](const Pair& pair) { return pair.a == a && pair.b == b; };
  if (std::ranges::any_of(matching.pairs, is_it)) return;
  const auto clash = [&](const Pair& pair) { return pair.a == a || pair.b == b; };
  for (const Pair& pair : matching.pairs) {
    if (!clash(pair)) continue;
    if (pair.a != a) matching.only_a.push_back({pair.a});
    if (pair.b != b) matching.only_b.push_back({pair.b});
  }
  std::erase_if(matching.pairs, clash);
  std::erase_if(matching.only_a, [&](const Leftover& left) { return left.tensor == a; });
  std::erase_if(matching.only_b, [&](const Leftover& left) { return left.tensor == b; });
  Pair pair{.a = a, .b = b, .layer = {}, .stage = {}};
  pair.matched_by = &matchers::value;
  matching.pairs.push_back(std::move(pair));
}

}  // namespace

MergesOf lora_merges(const MergeSide& side) { return without_parts(lora_ways(side)); }

MergesOf weight_norm_merges(const MergeSide& side) { return without_parts(weight_norm_ways(side)); }

FoldedNorms batch_norm_merges(const MergeSide& side) {
  FoldedWays ways = batch_norm_ways(side);
  return {without_parts(ways.ways), std::move(ways.biases), ways.all_tried};
}

WaysOf merge_ways(char side, const Catalog& a, const Catalog& b, const Matching& matching) {
  const MergeSide searched = side_of(side, side == 'a' ? a : b, side == 'a' ? b : a, matching);
  WaysOf ways;
  for (WaysOf found :
       {weight_norm_ways(searched), lora_ways(searched), batch_norm_ways(searched).ways})
    ways.merge(found);
  return ways;
}

View merged_view(const View& like, Packed packed) {
  // The shape is that of a tensor that is there, so that it has no limit left to break.
  const DType dtype = is_in_blocks(like.dtype) ? like.dtype : DType::f32;
  return packed_view(dtype, like.shape, std::move(packed)).value();
}

Merges find_merges(const Catalog& a, const Catalog& b, Matching& matching) {
  Merges merges;
  if (!are_checkpoints(a, b)) return merges;
  for (const char side : {'a', 'b'}) {
    const Catalog &own = side == 'a' ? a : b, &other = side == 'a' ? b : a;
    MergesOf& of = side == 'a' ? merges.a : merges.b;
    const MergeSide searched = side_of(side, own, other, matching);
    FoldedNorms folded = batch_norm_merges(searched);
    for (MergesOf found : {weight_norm_merges(searched), lora_merges(searched), folded.merges})
      of.merge(found);
    for (const FoldedBias& bias : folded.biases) pair_bias(side, bias, matching);
    if (!folded.all_tried)
      matching.notes.push_back(
          fmt::format("{} has too many batch norms to try each one with each weight: some that the "
                      "other side folded in may be reported as different",
                      capital(side)));
  }
  return merges;
}

}  // namespace tensordiff
