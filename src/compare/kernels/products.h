// Sums of products of two runs of values: all that the rows and heads of a pair are measured by.

#pragma once

#include <cstddef>

namespace tensordiff::kernels {

// Over the pairs in which both values are finite; d = b − a.
struct Products {
  double aa = 0, bb = 0, dd = 0, ab = 0;
};

Products products(const float* a, const float* b, std::size_t count);
Products products(const double* a, const double* b, std::size_t count);

namespace reference {
Products products(const float* a, const float* b, std::size_t count);
Products products(const double* a, const double* b, std::size_t count);
}  // namespace reference

}  // namespace tensordiff::kernels
