// A tensor in a few numbers that do not change when its axes are moved or its elements rounded, to
// tell whether two tensors under different names hold the same.

#pragma once

#include <array>

#include "tensor/tensor.h"

namespace tensordiff {

struct Signature {
  uint64_t elements = 0;               // Of all shards; 0 where it cannot be told.
  std::array<double, 5> means{};       // Of functions of the elements; see signature.cpp.
  std::array<double, 5> deviations{};  // Of the same.
  bool varied = false;                 // Not one value all over.
};

// Reads the whole tensor, unless it is larger than `elements_max`.
Signature signature_of(const Tensor& tensor, uint64_t elements_max);

// How many standard errors the two are apart: about 1 or more for different tensors, even of one
// distribution; about the size of the rounding, relative, where they hold the same elements.
double distance(const Signature& a, const Signature& b);

}  // namespace tensordiff
