// Arrays that are stored in chunks of one size, some of which may be missing: the datasets of HDF5,
// the arrays of zarr. They are put together when somebody first reads them.

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "formats/format.h"

namespace tensordiff {

inline constexpr uint64_t kChunkBytesMax = 1ULL << 30;  // Of one chunk, and of a layer of them.

struct ChunkedArray {
  DType dtype = DType::f32;
  bool swapped = false;
  Shape shape;
  Shape chunk_shape;
  std::string fill;            // One element, for where no chunk is.
  std::vector<Shape> origins;  // Of the chunks that there are.
  // The bytes of one of them: all of chunk_shape, by rows, also where it reaches past the array.
  std::function<Result<std::string>(std::size_t chunk)> unpack;
};

// Says what is wrong when a chunk lies outside the array, comes twice or is too large.
Result<View> chunked_view(ChunkedArray array, const Limits& limits);

}  // namespace tensordiff
