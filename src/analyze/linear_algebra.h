// The linear algebra that the analyses share, for matrices small enough to hold: patches of a few
// thousand values cut out of tensors.

#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace tensordiff {

// Row-major.
struct Dense {
  std::size_t rows = 0, columns = 0;
  std::vector<double> values;

  std::span<const double> row(std::size_t index) const {
    return std::span(values).subspan(index * columns, columns);
  }
  std::span<double> row(std::size_t index) {
    return std::span(values).subspan(index * columns, columns);
  }
  bool empty() const { return values.empty(); }
};

Dense difference(const Dense& b, const Dense& a);

double dot(std::span<const double> x, std::span<const double> y);

// <x, y> / (‖x‖ ‖y‖); 0 where either is zero.
double cosine(std::span<const double> x, std::span<const double> y);

// M Mᵀ, or Mᵀ M where that is smaller: both have the squares of the singular values of M.
Dense gram(const Dense& matrix);

// M Mᵀ.
Dense row_gram(const Dense& matrix);

// Mᵀ.
Dense turned(const Dense& matrix);

// Of a symmetric matrix, largest first: Householder to three diagonals, then implicit QL.
std::vector<double> eigenvalues(const Dense& symmetric);

// What the squares of the singular values say, largest first.
struct Spectrum {
  std::vector<double> energies;

  double total() const;
  double stable_rank() const;     // Σσ² / σ₁², 0 for a zero matrix.
  double effective_rank() const;  // exp of the entropy of σ² / Σσ².
  // How many of the largest hold this share of the energy; 0 for a zero matrix.
  std::size_t rank_holding(double share) const;
  // The share that the largest `count` hold.
  double held_by(std::size_t count) const;
};
Spectrum spectrum_of(const Dense& matrix);

// A matrix over a unit near its largest value, so that squares stay within the range of a double,
// and the row_gram() of that. What is not finite is 0.
struct Scaled {
  Dense matrix, rows;
  double largest = 0, unit = 1;
};
Scaled scaled(Dense matrix);
Spectrum spectrum_of(const Scaled& scaled);

// The values over their length; zeros stay as they are.
void make_unit(std::vector<double>& values);

// A Gram matrix without the means of its rows and columns, of unit length: the products of two are
// their linear_cka(), which for many pairs need not centre each again.
Dense centred(Dense gram);

// Linear centred kernel alignment of two representations of the same n examples, from their n × n
// Gram matrices: 1 when one is a rotation and scaling of the other. 0 where either is constant.
double linear_cka(const Dense& gram_x, const Dense& gram_y);

}  // namespace tensordiff
