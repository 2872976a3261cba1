// Elements that are stored in blocks with shared scales, as GGUF has them: q4_0, q6_k, mxfp4 …
//
// A block is decoded when an element of it is asked for, to float32 and by the same operations in
// the same order as ggml does it, so that values are equal to the last bit.

#pragma once

#include "base/byte_source.h"
#include "tensor/dtype.h"

namespace tensordiff {

inline constexpr std::size_t kBlockElementsMax = 256;

// All elements of one block. Not for types that are undecoded.
void decode_block(DType dtype, bool swapped, const std::byte* block, float* values);

// Blocks one after another. The caller has checked that the elements are there.
struct Blocks {
  DType dtype;
  bool swapped;  // Numbers of two bytes and more are in the other byte order.
  ByteView bytes;

  // `count` elements, `step` apart, as float32.
  void read(uint64_t first, int64_t step, std::size_t count, std::byte* out) const;
};

}  // namespace tensordiff
