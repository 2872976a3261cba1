// Variables of TensorFlow checkpoints that were stored in pieces.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tensor/tensor.h"

namespace tensordiff::tf {

// The part of one axis; all of it where it has no length.
struct Extent {
  uint64_t start = 0;
  std::optional<uint64_t> length;
};
using Slice = std::vector<Extent>;

// TensorSliceProto.
Result<Slice> read_slice(ByteView message);

// The key of a piece in the index: its name and place in an encoding that sorts as they do.
std::string key_of(std::string_view name, const Slice& slice);

// Where a piece lies in a shape, still without its bytes.
Result<Part> place_part(const Slice& slice, const Shape& shape);

// Pieces that fill the shape, each element once.
Result<View> joined(DType dtype, const Shape& shape, std::vector<Part> parts);

}  // namespace tensordiff::tf
