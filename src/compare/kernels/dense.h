// Products of rows of small matrices, in float64.

#pragma once

#include <cstddef>

namespace tensordiff::kernels {

// Σ x·y.
double dot(const double* x, const double* y, std::size_t count);

// Σ (x − y)².
double squares_apart(const double* x, const double* y, std::size_t count);

// Adds a multiple of a row to another.
void add_times(double factor, const double* row, std::size_t count, double* to);

// Two multiples of a row that are taken from another: of v by `of_v`, of w by `of_w`.
struct TwoRows {
  const double* v;
  const double* w;
  double of_v, of_w;
};
void subtract(const TwoRows& rows, std::size_t count, double* from);

namespace reference {
double dot(const double* x, const double* y, std::size_t count);
double squares_apart(const double* x, const double* y, std::size_t count);
void add_times(double factor, const double* row, std::size_t count, double* to);
void subtract(const TwoRows& rows, std::size_t count, double* from);
}  // namespace reference

}  // namespace tensordiff::kernels
