// What a tensor could be as a whole, where it is stored in pieces: on several ranks, or beside
// others in one fused tensor.

#pragma once

#include <span>

#include "align/aligner.h"

namespace tensordiff {

// How ranks were put together otherwise than one after the other, or all taken for copies. As bits.
namespace regrouped {
inline constexpr unsigned kRepeated = 1;  // Groups of ranks repeat each other.
inline constexpr unsigned kGrid = 2;      // Pieces along two axes.
inline constexpr unsigned kParts = 4;     // Each rank has several parts.
}  // namespace regrouped

struct Whole {
  View view;
  Plan steps;
  std::vector<Copy> copies;
  std::vector<View> substitutes;  // Copies of all of it: any of them may speak for its layout.
  bool guess = false;             // Only the values can confirm it.
  unsigned regrouping = 0;        // Of regrouped.
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
