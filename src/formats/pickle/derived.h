// Tensors that are stored in another form than they mean: quantised, sparse, conjugated. Their
// values are made when somebody first reads them, as a plain row-major tensor.

#pragma once

#include <functional>

#include "base/result.h"
#include "formats/format.h"
#include "tensor/tensor.h"

namespace tensordiff::pickle {

// A tensor made piece by piece may be large: beyond some size it goes to a temporary file. A sparse
// one is filled out of order and must fit in memory: Limits::dense_bytes_max.
inline constexpr uint64_t kMadeBytesMax = 64ULL << 30;

// Writes elements [first, first + count) of a made tensor.
using Fill = std::function<void(uint64_t first, std::size_t count, std::byte* out)>;

// A row-major tensor whose elements are made in order. `open` is called when they are first needed.
Result<View> made_in_order(DType dtype, const Shape& shape, std::function<Result<Fill>()> open);

// torch's flags that ask for the conjugate, the negative or both of what is stored.
Result<View> flipped(View stored, bool conjugate, bool negative);

// (q - zero point) * scale, as f32: with one pair for all, or one for each index of an axis.
struct ChannelScales {
  View scales;
  View zero_points;
  std::size_t axis;
};
Result<View> dequantized(View stored, double scale, double zero_point);
Result<View> dequantized(View stored, ChannelScales channels);

// Coordinates [axes, count] and as many values, which may have axes of their own. Values at the
// same place add up.
Result<View> sparse_coo(View indices, View values, Shape shape, const Limits& limits);

// Compressed rows or columns: starts [n + 1], the other coordinate [count], and values that may be
// blocks: [count] or [count, block rows, block columns].
struct Compressed {
  View starts;
  View others;
  View values;
  bool by_column;
};
Result<View> sparse_compressed(Compressed parts, Shape shape, const Limits& limits);

}  // namespace tensordiff::pickle
