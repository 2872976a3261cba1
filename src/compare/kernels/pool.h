// Which of many values is the largest, by size: what a cell of a picture shows.
//
// A value is turned into a key, an integer that orders by size: the bits of a float without its
// sign already do, with infinity above all numbers and NaN above infinity. The sign goes to the
// lowest bit, where it only decides between x and -x: x is the larger. So the maximum of keys is
// all there is to pooling, whatever the values are.

#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tensordiff::kernels {

template <class T>
using Key = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

template <class T>
Key<T> key_of(T value) {
  return std::rotl(std::bit_cast<Key<T>>(value), 1) ^ 1;
}

template <class T>
T value_of(Key<T> key) {
  return std::bit_cast<T>(std::rotr(key ^ 1, 1));
}

// Raises each of `keys` to the key of its value, where that is larger. 0 is the lowest key.
void raise(const float* values, std::size_t count, uint32_t* keys);
void raise(const double* values, std::size_t count, uint64_t* keys);

// |b - a| into `out`; NaN where either is not finite.
void distances(const float* a, const float* b, std::size_t count, float* out);
void distances(const double* a, const double* b, std::size_t count, double* out);

}  // namespace tensordiff::kernels
