// What the analyses need to know of a pair of weights beyond its comparison, measured once for all
// of them and kept as a few numbers.
//
// What is said of rows is exact, and costs no pass over both sides: a few values show that a row is
// not zero. Spectra, distributions and levels come from a sample where the tensor is large.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyze/linear_algebra.h"
#include "analyze/study.h"

namespace tensordiff {

// One side by row.
struct RowFacts {
  uint64_t dead = 0;          // Rows that are zero all over,
  uint64_t dead_columns = 0;  // and columns of a matrix.
  uint64_t duplicates = 0;    // Rows of the sample that point the same way as an earlier one.
};

// How a side uses the values that its type has.
struct Levels {
  double saturated = 0;  // Share that lies at the end of the range of the type.
};

struct Profile {
  std::string fault;  // Why it could not be measured; empty when it could.
  uint64_t rows = 1, columns = 1;
  bool by_row = false;  // Has more than one row, and not too many to hold.
  RowFacts rows_a, rows_b;
  uint64_t rows_changed = 0;  // At least so many, where it is half of them or more.
  bool sampled = false;       // The three below are of a patch.
  Spectrum spectrum_a, spectrum_b;
  Spectrum spectrum_change;  // Empty, too, where `directions` is too many for a low rank.
  double directions = 0;     // The whole change has at least so many (directions_of()).
  // The largest distance of the two distributions of values (Kolmogorov–Smirnov), 0 to 1, and how
  // many values of each side it was taken from.
  double distribution_distance = 0;
  uint64_t distribution_values = 0;
  Levels levels_a, levels_b;
};

// Of each of study.weights(), in their order.
std::vector<Profile> profile_weights(const Study& study);

// Signal over noise of each row in dB, 10 log10(‖a‖² / ‖b − a‖²), by one pass over both sides.
struct RowNoise {
  // The worst and the median of rows that changed and are not zero; nothing where none is.
  std::optional<double> sqnr_min, sqnr_median;
  // The same once b is scaled to fit a best, each row by itself, for integers without their scale;
  // the last is that of the tensor as a whole, its rows scaled so.
  std::optional<double> fitted_min, fitted_median, fitted;
};
RowNoise row_noise(const AlignedPair& views);

// Rows, and columns of a matrix, that are zero all over, ascending.
std::vector<uint64_t> zero_rows(const View& view);
std::vector<uint64_t> zero_columns(const View& view);

// The distance of two sets of values; both are sorted here.
double kolmogorov_smirnov(std::vector<double> x, std::vector<double> y);

// The largest finite value of a type; nothing for wide ones, which nobody saturates.
std::optional<double> largest_value(DType dtype);

}  // namespace tensordiff
