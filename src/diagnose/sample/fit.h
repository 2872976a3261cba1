// Small sums that the diagnoses share. Positions where a side is not finite do not count.

#pragma once

#include <span>
#include <string>
#include <vector>

#include "diagnose/sample/matrix.h"

namespace tensordiff {

// ‖x‖
double norm(std::span<const double> x);
// ‖x − y‖
double distance(std::span<const double> x, std::span<const double> y);

// Where two outputs are farthest apart: a few tokens that may be the only ones that are wrong.
std::vector<uint64_t> farthest_rows(const Matrix& a, const Matrix& b, std::size_t count);

// What multiplies x to come nearest to y: <x,y> / <x,x>; 0 where x is all zeros.
double factor_between(std::span<const double> x, std::span<const double> y);

// The matrix with each value made by `value(row, column)`, in the shape of another.
template <class Value>
Matrix filled(const Matrix& shape, const Value& value) {
  Matrix result = like(shape);
  double* to = result.values.data();
  for (uint64_t row = 0; row < result.rows(); ++row)
    for (uint64_t column = 0; column < result.features; ++column) *to++ = value(row, column);
  return result;
}

// Whether two numbers are the same to a relative tolerance.
bool near(double x, double y, double tolerance);

// "3, 7–9"; of many, the first few.
std::string ranges_text(const std::vector<uint64_t>& sorted);

// A number as a sentence has it, with the name of a well-known constant where it is one:
// "0.125 (1/√64)". `sizes` are sizes whose roots may explain it.
std::string factor_text(double factor, std::span<const uint64_t> sizes, double tolerance);

}  // namespace tensordiff
