// Stored elements to tiles of float or double, many at a time.

#pragma once

#include <cstddef>

#include "tensor/dtype.h"

namespace tensordiff::kernels {

// Whether every value of a type is exactly a float: then its tiles are compared as floats.
bool fits_float(DType dtype);

// `count` elements as float. Only for types with fits_float().
void decode(DType dtype, const std::byte* elements, std::size_t count, float* values);

// `count` integers of 32 or 64 bits as double. False where the type is another, or where an integer
// of 64 bits is so large that a double may not hold it, or its distance to another such one.
bool decode_integers(DType dtype, const std::byte* elements, std::size_t count, double* values);

// float to the bits of f16 or bf16, rounded to nearest even as hardware does.
void encode16(DType dtype, const float* values, std::size_t count, uint16_t* bits);

}  // namespace tensordiff::kernels
