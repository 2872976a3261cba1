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

// A product of two matrices whose rows lie `…_step` values apart.
struct Factors {
  const double* x;  // rows × depth
  std::size_t x_step;
  const double* y;  // depth × columns
  std::size_t y_step;
  std::size_t rows, depth, columns;
};
// to[i][j] = Σ x[i][k] y[k][j], for i < rows and j < columns.
void multiply(const Factors& factors, double* to, std::size_t to_step);

// A symmetric matrix of n × n values whose v wᵀ + w vᵀ is taken off, and what its product with
// another vector is then. One pass over the matrix does both.
struct Turn {
  const double* v;
  const double* w;
  const double* next;
};
// Rows from `first` on: matrix[i][j] −= v[i] w[j] + w[i] v[j]; product[j] = Σ next[i] matrix[i][j].
struct Square {
  double* values;
  std::size_t n, step, first;
};
void turn(const Turn& by, const Square& matrix, double* product);

namespace reference {
void multiply(const Factors& factors, double* to, std::size_t to_step);
void turn(const Turn& by, const Square& matrix, double* product);
double dot(const double* x, const double* y, std::size_t count);
double squares_apart(const double* x, const double* y, std::size_t count);
void add_times(double factor, const double* row, std::size_t count, double* to);
}  // namespace reference

}  // namespace tensordiff::kernels
