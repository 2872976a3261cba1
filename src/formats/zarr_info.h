// What a zarr array says of itself: .zarray of version 2, zarr.json of version 3.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace tensordiff::zarr {

enum class Codec { gzip, zlib, zstd, blosc, lz4, shuffle, crc32c };

struct ArrayInfo {
  DType dtype = DType::f32;
  bool swapped = false;
  Shape shape;
  Shape chunk_shape;
  std::string fill;                // One element.
  std::vector<std::size_t> order;  // Of the axes inside a chunk: {1, 0} is by columns.
  std::vector<Codec> codecs;       // In the order in which they were applied.
  std::string prefix;              // Of the names of chunks: "c/" or none.
  char separator = '.';

  // Where in the grid the chunk of this name is; nothing for a file that is no chunk.
  std::optional<Shape> grid_index(std::string_view name) const;
};

Result<ArrayInfo> read_version2(const Json& json);
Result<ArrayInfo> read_version3(const Json& json);

}  // namespace tensordiff::zarr
