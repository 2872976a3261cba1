// How many representable steps of a type lie between two values.

#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace tensordiff {

// Whether distances between two types are counted in steps: floats whose steps are their own, not
// those of the block they lie in.
inline bool have_steps(DType a, DType b) {
  return is_float(a) && is_float(b) && !is_in_blocks(a) && !is_in_blocks(b);
}

// The largest distance among `count` finite pairs, in steps of `dtype`, to which values of a finer
// type are rounded first. Types of 16 bits and less take floats, others what they are.
uint64_t ulp_between(DType dtype, const float* a, const float* b, std::size_t count);
uint64_t ulp_between(DType dtype, const double* a, const double* b, std::size_t count);

// The same for `count` pairs of one type as stored; only for types that are_stored_steps().
bool are_stored_steps(DType dtype);
uint64_t ulp_stored(DType dtype, const std::byte* a, const std::byte* b, std::size_t count);

}  // namespace tensordiff
