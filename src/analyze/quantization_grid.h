// Whether the values of a tensor lie on a code book, as rounding to a few bits with a scale for
// each group leaves them, and which values share a scale.

#pragma once

#include <optional>
#include <span>
#include <string>

#include "analyze/code_book.h"
#include "base/result.h"
#include "tensor/tensor.h"

namespace tensordiff {

struct Grid {
  enum class Share { tensor, row, column, block, block_down };

  const CodeBook* book = nullptr;  // One of code_books().
  Share share = Share::tensor;     // What shares a scale.
  std::size_t block = 0;           // Elements of a block, along rows or down columns.
  int bits = 0;
  double step = 0;      // In the middle of those sampled; of level 1 for books of their own.
  uint64_t levels = 0;  // The most that were seen in use in one group.
  double bits_of_evidence = 0;
  double bits_per_value = 0;  // The same for each value that is not zero.

  // "int8, a scale for each row"
  std::string text() const;
};

// The largest groups of which nearly all that were sampled fit one book, unless smaller ones
// explain each value much better. Nothing where none fits, or where too few values are there to
// tell. The least and the largest value may be given where they are known: a sample rarely has
// them.
Result<std::optional<Grid>> find_grid(const View& view, std::span<const double> extremes = {});

}  // namespace tensordiff
