// A tensor in a few hundred numbers, for telling whether two tensors hold the same values.

#pragma once

#include <vector>

#include "tensor/tensor.h"

namespace tensordiff {

struct Fingerprint {
  Shape shape;
  uint64_t elements = 0;          // 0 where the tensor cannot be read.
  std::vector<double> in_order;   // Values at positions that depend on the count alone.
  std::vector<double> quantiles;  // The same for any order of the axes; of small tensors only.
};

Fingerprint fingerprint_of(const Tensor& tensor);

// From 0, where one is the other up to scale and offset, to 1, where they have nothing in common or
// not the same number of elements.
double disagreement(const Fingerprint& a, const Fingerprint& b);

}  // namespace tensordiff
