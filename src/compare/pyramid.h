// Pictures of a 2-D slice of a pair, from the whole of it down to single elements.
//
// A picture is a grid of cells; each cell stands for a square of elements and keeps the one of
// largest size and the mean. pool() makes the picture of a rectangle from its elements, pyramid()
// all coarse pictures of a slice in one streaming pass: the first pools enough to be small, and
// each next one pools 2 × 2 cells of the last.

#pragma once

#include <cstdint>
#include <vector>

#include "align/aligner.h"
#include "base/result.h"

namespace tensordiff {

enum class Layer { a, b, distance };  // distance: |b - a|, NaN where either is not finite.

// Which plane of the tensor, and what of it.
struct Slice {
  std::size_t row_axis = 0;
  std::size_t column_axis = 1;
  std::vector<uint64_t> index;  // On every axis; those of the two are ignored.
  Layer layer = Layer::distance;
};

struct Rectangle {
  uint64_t row = 0, column = 0, rows = 0, columns = 0;
};

struct Picture {
  uint64_t pool = 1;                  // A cell stands for pool × pool elements.
  std::size_t rows = 0, columns = 0;  // In cells.
  std::vector<float> most;            // The value of largest size; NaN where any is NaN.
  std::vector<float> mean;            // Of the finite values; NaN where there is none.
};

// The picture of a rectangle of the slice, pooled by `pool`.
Result<Picture> pool(const AlignedPair& pair, const Slice& slice, const Rectangle& rectangle,
                     uint64_t pool);

// Pictures of the whole slice, finest first, the last at most kPictureSide cells on either side.
inline constexpr uint64_t kPictureSide = 256;
inline constexpr uint64_t kPyramidCellsMax = 4 << 20;  // Of the finest.
Result<std::vector<Picture>> pyramid(const AlignedPair& pair, const Slice& slice);

}  // namespace tensordiff
