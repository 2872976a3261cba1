// Which block of a each block of b is nearest to: the heart of finding swapped and repeated ones.

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "diagnose/sample/matrix.h"

namespace tensordiff {

struct BlockMap {
  std::vector<uint64_t> source;  // For each block of b, the block of a.
  bool moved = false;
};

// Splits the features into `count` blocks of one size. Nothing where they are all where they were,
// or two of b are one of a.
std::optional<BlockMap> block_order(const Matrix& a, const Matrix& b, uint64_t count);

// Nothing where the blocks of b are not all the same one of a.
std::optional<BlockMap> one_block(const Matrix& a, const Matrix& b, uint64_t count);

// The features of a in the order that a map gives.
Matrix rearranged(const Matrix& a, const BlockMap& map);

// Tokens and features swapped.
Matrix transposed(const Matrix& matrix);

// Numbers of blocks worth trying, fewest first.
std::vector<uint64_t> block_counts(const Matrix& matrix);

}  // namespace tensordiff
