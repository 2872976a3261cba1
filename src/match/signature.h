// A tensor in a few numbers that do not change when its axes are moved or its elements rounded, to
// tell whether two tensors under different names hold the same.

#pragma once

#include <array>
#include <limits>
#include <vector>

#include "tensor/tensor.h"

namespace tensordiff {

// Sums over elements. They add up where tensors are put together.
struct ValueMoments {
  uint64_t elements = 0;
  uint64_t finite = 0;
  std::array<double, 5> sums{}, squares{};  // Of functions of the elements; see signature.cpp.
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void add(double value);
  void add(const ValueMoments& other);
};

struct Signature {
  uint64_t elements = 0;               // Of all shards; 0 where it cannot be told.
  std::array<double, 5> means{};       // Of those functions.
  std::array<double, 5> deviations{};  // Of the same.
  bool varied = false;                 // Not one value all over.
};

Signature signature_of(const ValueMoments& moments);

// Reads the whole tensor, unless it is larger than `elements_max`. What several ranks hold counts
// once.
Signature signature_of(const Tensor& tensor, uint64_t elements_max);

// The moments at each index of an axis; none where the view cannot be read.
std::vector<ValueMoments> moments_along(const View& view, std::size_t axis);

// How many standard errors the two are apart: about 1 or more for different tensors, even of one
// distribution; about the size of the rounding, relative, where they hold the same elements.
double distance(const Signature& a, const Signature& b);

// A second look at two tensors whose signatures, given here, are near: the same unit, of more
// numbers, which reads both tensors once more. Two of one distribution come near by the signature
// alone about once in fifty.
double distance_in_detail(const Tensor& a, const Tensor& b, const Signature& of_a);

}  // namespace tensordiff
