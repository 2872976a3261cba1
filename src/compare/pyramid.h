// Pictures of a 2-D slice of a pair, from the whole of it down to single elements.
//
// A picture is a grid of cells; each cell stands for a square of elements and keeps the one of
// largest size, or the mean. pool() makes the picture of a rectangle from its elements, glance()
// one from a few of them, and pyramid() all coarse pictures of a slice in one streaming pass: the
// first pools enough to be small, and each next one pools 2 × 2 cells of the last.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "align/aligner.h"
#include "base/result.h"

namespace tensordiff {

enum class Layer { a, b, distance };  // distance: |b - a|, NaN where either is not finite.
enum class Pooling {
  most,  // The value of largest size; of x and -x, x. NaN where any is NaN.
  mean,  // Of the finite values; NaN where there is none.
};

// Which plane of the tensor, and what of it.
struct Slice {
  std::size_t row_axis = 0;
  std::size_t column_axis = 1;
  std::vector<uint64_t> index;  // On every axis; those of the two are ignored.
  Layer layer = Layer::distance;
  Pooling pooling = Pooling::most;
};

struct Rectangle {
  uint64_t row = 0, column = 0, rows = 0, columns = 0;
};

struct Picture {
  Layer layer = Layer::distance;
  uint64_t pool = 1;                  // A cell stands for pool × pool elements.
  std::size_t rows = 0, columns = 0;  // In cells.
  std::vector<float> cells;
};

// The picture of a rectangle of the slice, pooled by `pool`.
Result<Picture> pool(const AlignedPair& pair, const Slice& slice, const Rectangle& rectangle,
                     uint64_t pool);

// The same from one short run of elements in the middle of each cell: at once, however many
// elements there are, but it may miss what is elsewhere.
Result<Picture> glance(const AlignedPair& pair, const Slice& slice, const Rectangle& rectangle,
                       uint64_t pool);

// Pictures of the whole slice, for each of the layers finest first, the last at most kPictureSide
// cells on either side. What slice.layer says counts for nothing here.
inline constexpr uint64_t kPictureSide = 256;
inline constexpr uint64_t kPyramidCellsMax = 4 << 20;  // Of the finest.
Result<std::vector<Picture>> pyramid(const AlignedPair& pair, const Slice& slice,
                                     std::span<const Layer> layers);

}  // namespace tensordiff
