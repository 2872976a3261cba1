// Shapes and strides: counts of elements, row-major, the last axis fastest.

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/checked_math.h"

namespace tensordiff {

using Shape = std::vector<uint64_t>;
using Strides = std::vector<int64_t>;  // In elements; 0 where an axis is repeated.

// More elements than this in one tensor is a lie or an attack; see docs/formats.md.
inline constexpr uint64_t kElementsMax = uint64_t{1} << 40;
inline constexpr std::size_t kRankMax = 64;

// The product of the axes; nothing where it exceeds kElementsMax.
inline std::optional<uint64_t> element_count(const Shape& shape) {
  uint64_t count = 1;
  for (const uint64_t size : shape)
    if (size == 0) return 0;
  for (const uint64_t size : shape) {
    const std::optional<uint64_t> product = checked_mul(count, size);
    if (!product || *product > kElementsMax) return std::nullopt;
    count = *product;
  }
  return count;
}

inline Strides contiguous_strides(const Shape& shape) {
  Strides strides(shape.size());
  uint64_t step = 1;  // Unsigned: beside an axis of size 0 the others may be of any size, and wrap.
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = static_cast<int64_t>(step);
    step *= shape[axis] ? shape[axis] : 1;
  }
  return strides;
}

// The index of the element at a row-major position.
inline std::vector<uint64_t> index_at(const Shape& shape, uint64_t position) {
  std::vector<uint64_t> index(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    index[axis] = position % shape[axis];
    position /= shape[axis];
  }
  return index;
}

}  // namespace tensordiff
