// How many representable steps of a type lie between two values.

#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace tensordiff {

// The largest distance among `count` finite pairs, in steps of `dtype`, to which values of a finer
// type are rounded first. Types of 16 bits and less take floats, others what they are.
uint64_t ulp_between(DType dtype, const float* a, const float* b, std::size_t count);
uint64_t ulp_between(DType dtype, const double* a, const double* b, std::size_t count);

// The same for `count` pairs of one type as stored; only for types that are_stored_steps().
bool are_stored_steps(DType dtype);
uint64_t ulp_stored(DType dtype, const std::byte* a, const std::byte* b, std::size_t count);

}  // namespace tensordiff
