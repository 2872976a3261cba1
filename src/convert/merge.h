// Weights that one side keeps in several tensors and the other side has as one: a weight and its
// LoRA update, a convolution and the batch norm behind it, the direction and the length of a
// weight.
//
// Whether B holds them merged is a question of values, on which all layers vote like on any other
// part of a Form. So a merge is a second operand of a pair, computed when it is read.

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "convert/form.h"
#include "match/matcher.h"
#include "tensor/catalog.h"

namespace tensordiff {

// What a tensor is when it is merged with those beside it.
struct Merged {
  Merge how;
  View view;
  std::vector<std::size_t> with;  // The tensors that it takes in; none for a second guess.
};

// For the tensors of one side that have something to be merged with: the ways, the usual one first.
using MergesOf = std::unordered_map<std::size_t, std::vector<Merged>>;

struct Merges {
  MergesOf a, b;

  const MergesOf& of(char side) const { return side == 'a' ? a : b; }
};

// Pairs weights that are stored as direction and length by the name of the weight, where the other
// side has them as one. Before tensors are paired.
void name_normed_weights(Catalog& a, Catalog& b);

// What the unpaired tensors of each side could be merged into. Biases that only come from a merge
// get a partner, and leftovers that a merge takes in say so.
Merges find_merges(const Catalog& a, const Catalog& b, Matching& matching);

// One side of a search: its tensors, which of them have no partner, and the partners of the others.
struct MergeSide {
  char side;
  const Catalog& own;
  const Catalog& other;
  std::unordered_map<std::size_t, std::size_t> partner;  // Of tensors that are paired whole.
  std::vector<bool> is_free;                             // By tensor of `own`.
};

// A view whose elements are computed from others. `like` is the stored weight.
View merged_view(const View& like, Packed packed);

MergesOf lora_merges(const MergeSide& side);
MergesOf weight_norm_merges(const MergeSide& side);

// A bias that B has and A has not, because it comes from a batch norm.
struct FoldedBias {
  std::size_t own;    // The bias of the convolution, or else of the norm.
  std::size_t other;  // Of the other side.
};
struct FoldedNorms {
  MergesOf merges;
  std::vector<FoldedBias> biases;
  bool all_tried = true;  // Or there were too many norms.
};
FoldedNorms batch_norm_merges(const MergeSide& side);

}  // namespace tensordiff
