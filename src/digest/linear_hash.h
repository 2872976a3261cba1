// A hash of the values of a tensor that can be put together: from the hashes of q, k and v follows
// that of the fused tensor, and from those of all ranks that of the whole.
//
// The hash of a matrix v is the sum of v[i][j] x^i y^j modulo the prime 2^61 - 1, for two pairs of
// x and y: 122 bits. Axes behind the first count as one; a vector is one column. It is linear, so
// what is appended along the first axis is added times x^rows, along the second times y^columns.
// It tells stale weights apart, and is no defence against somebody who looks for a collision.
//
// A value counts as the bits of its float32, where that is exact, else as those of its float64: a
// bf16 and an f32 of the same value are the same. So are both zeros, and all NaN.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "compare/comparison.h"
#include "tensor/tensor.h"

namespace tensordiff {

struct LinearHash {
  std::array<uint64_t, 2> lanes = {0, 0};

  bool operator==(const LinearHash&) const = default;

  // Adds what follows behind `rows` rows, or behind `columns` elements of each row.
  void append_rows(const LinearHash& later, uint64_t rows);
  void append_columns(const LinearHash& later, uint64_t columns);
};

std::string hex_of(const LinearHash& hash);
std::optional<LinearHash> hash_of_hex(std::string_view text);

struct Hashed {
  LinearHash hash;
  Stats stats;
};

// One pass over all elements, in their order, as if they had the shape `as`. An error where they
// cannot be read.
Result<Hashed> hash_values(const View& view, const Shape& as);
inline Result<Hashed> hash_values(const View& view) { return hash_values(view, view.shape); }

}  // namespace tensordiff
