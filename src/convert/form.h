// How one tensor of B is made of one of A, in the words of a converter: axes moved, rows in another
// order, parts of a fused tensor, a function of the values.
//
// A Form has no sizes that change from layer to layer, so that the pairs of one kind can vote on
// it. A Candidate is a Form carried out on one pair.

#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "align/aligner.h"

namespace tensordiff {

// The order of the rows of one side, as seen from the other.
enum class RowOrder : uint8_t {
  as_is,
  rope,     // The features of a head as two halves on one side, as neighbours on the other.
  by_head,  // Each head has its own q, k and v on one side; the other has all q, all k, all v.
};

struct Rows {
  RowOrder order = RowOrder::as_is;
  char side = 'a';     // The side with halves, or with the parts inside each head.
  uint64_t axis = 0;   // Of the aligned pair.
  uint64_t heads = 0;  // by_head: how many; rope: 0.
  uint64_t head = 0;   // rope: features of a head; by_head: 0.
  // by_head: rows of q to each row of k or v in a group; 1 without grouped queries, 0 where the
  // tensor has two equal parts (gate and up).
  uint64_t queries = 0;

  auto operator<=>(const Rows&) const = default;
};

// What is done to the values of A.
enum class Function : uint8_t {
  none,
  plus_one,  // Norms that store their weight less one.
  minus_one,
  negated,
  negative_exp,  // Mamba's A from A_log.
  log_negated,   // The other way round.
};

// What a weight of one side was merged with to make that of the other.
enum class MergeKind : uint8_t { none, weight_norm, batch_norm, lora };

struct Merge {
  MergeKind kind = MergeKind::none;
  char side = 'a';    // The side that keeps the parts.
  int64_t scale = 0;  // LoRA: what the update is multiplied with, in millionths.

  auto operator<=>(const Merge&) const = default;
};

// One step of a plan without the sizes it was made for.
struct AxisStep {
  char side = 'a';
  Op op = Op::squeeze;
  std::vector<uint64_t> argument;

  auto operator<=>(const AxisStep&) const = default;
};

struct Form {
  std::vector<std::size_t> parts;  // The order of the parts of a fused tensor; empty: as named.
  std::vector<AxisStep> whole;     // How shards and parts are put together or cut.
  std::vector<AxisStep> axes;      // How axes are moved.
  Rows rows;
  Function function = Function::none;
  Merge merge;

  auto operator<=>(const Form&) const = default;
  bool moves_axes() const;
};

// "transposed", "axes in the order [3, 2, 0, 1]", "rows in RoPE order (heads of 64)", "A + 1".
std::string text_of(const Form& form);

// "LoRA update merged (scale 2)"
std::string text_of(const Merge& merge);

struct Candidate {
  Form form;
  AlignedPair pair;
};

}  // namespace tensordiff
