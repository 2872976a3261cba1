// Arithmetic on numbers that come from a file: it either gives the true result or says that there
// is none. Nothing read from a file is added, multiplied or padded any other way.

#pragma once

#include <concepts>
#include <cstdint>
#include <optional>

namespace tensordiff {

template <std::integral T>
std::optional<T> checked_add(T a, T b) {
  T sum;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

template <std::integral T>
std::optional<T> checked_mul(T a, T b) {
  T product;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// Whether [offset, offset + count) lies inside [0, size).
constexpr bool range_fits(uint64_t offset, uint64_t count, uint64_t size) {
  return count <= size && offset <= size - count;
}

}  // namespace tensordiff
