// What a tensor could be as a whole, where it is stored in pieces: on several ranks, or beside
// others in one fused tensor.

#pragma once

#include <span>

#include "align/aligner.h"

namespace tensordiff {

struct Whole {
  View view;
  Plan steps;
  std::vector<Copy> copies;
  std::vector<View> substitutes;  // Copies of all of it: any of them may speak for its layout.
  bool guess = false;             // Only the values can confirm it.
  bool groups = false;            // Groups of ranks repeat each other.
  bool unlike = false;            // It takes ranks for copies that do not look alike.
  uint64_t on_rank = 0;           // Elements that the first rank holds of it.
};

// All the ways to put it together, the likeliest first; one where it is not in pieces. An error
// says why the ranks cannot belong to one tensor.
Result<std::vector<Whole>> wholes_of(char side, const Operand& operand);

// Whether views agree in dtype and shape but for this axis.
bool fit_along(std::span<const View> shards, std::size_t axis);

// All that the ranks hold of a tensor, copies once, in any order: for what does not depend on it.
// What one rank holds, where the others do not fit to it.
View all_shards_of(const Tensor& tensor);

}  // namespace tensordiff
