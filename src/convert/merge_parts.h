// What merged weights are computed from, for who wants to do the same: the script of a conversion.

#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "convert/merge.h"

namespace tensordiff {

struct MergeParts {
  // Tensors of the same side. Weight norm: the length. LoRA: down, up. Batch norm: variance, mean,
  // factor, offset, and the bias of the layer before it; nothing for those that are not there.
  std::vector<std::optional<std::size_t>> tensors = {};
  uint64_t axis = 0;     // Weight norm and batch norm: the axis of their entries.
  double number = 0;     // LoRA: the scale. Batch norm: epsilon.
  bool turned = false;   // LoRA: the weight is stored as [in, out].
  bool is_bias = false;  // Batch norm: what is made is the bias.
};

struct MergeWay {
  Merged merged;
  MergeParts parts;
};
using WaysOf = std::unordered_map<std::size_t, std::vector<MergeWay>>;  // As MergesOf.

WaysOf lora_ways(const MergeSide& side);
WaysOf weight_norm_ways(const MergeSide& side);

struct FoldedWays {
  WaysOf ways;
  std::vector<FoldedBias> biases;
  bool all_tried = true;  // As in FoldedNorms.
};
FoldedWays batch_norm_ways(const MergeSide& side);

// All ways of one side, after find_merges().
WaysOf merge_ways(char side, const Catalog& a, const Catalog& b, const Matching& matching);

}  // namespace tensordiff
