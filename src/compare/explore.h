// A closer look at one pair, on demand: where along each axis it differs, how its differences and
// values are distributed, and its worst elements. Each is one streaming pass over both sides;
// memory does not grow with the tensors. (pyramid.h makes pictures.)
//
// Complex values count by modulus: |d| is the modulus of the difference.

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "align/aligner.h"
#include "base/result.h"

namespace tensordiff {

// The error by index along one axis. A long axis is shown in bins of several indexes.
struct AxisProfile {
  uint64_t indexes_per_bin = 1;
  std::vector<double> max_abs;      // Largest |d| in the bin; NaN where nothing was comparable.
  std::vector<double> mean_abs;     // Mean |d| of the bin, the same.
  std::vector<uint64_t> nonfinite;  // Positions where either side is not finite.
};
inline constexpr uint64_t kProfileBinsMax = 4096;

// One profile for each axis, all in one pass.
Result<std::vector<AxisProfile>> axis_profiles(const AlignedPair& pair);

// How many |d| lie in [2^e, 2^(e+1)) for each e from `lowest` on.
struct DifferenceHistogram {
  static constexpr int kLowest = -160;  // Smaller ones, down to float64's least, count as this.
  static constexpr int kBins = 160 + 128;
  std::vector<uint64_t> counts = std::vector<uint64_t>(kBins);
  uint64_t equal = 0;      // d = 0
  uint64_t nonfinite = 0;  // Either side is not finite.

  void merge(const DifferenceHistogram& other);
};
Result<DifferenceHistogram> difference_histogram(const AlignedPair& pair);

// The finite values of both sides in equal bins from `low` to `high`, which belongs to the last.
struct ValueHistogram {
  double low = 0;
  double high = 0;
  std::vector<uint64_t> a, b;

  void merge(const ValueHistogram& other);
};
Result<ValueHistogram> value_histogram(const AlignedPair& pair, double low, double high,
                                       std::size_t bins);

// The elements that differ most, worst first; of equal ones the first in row-major order. Pairs in
// which one side is not finite and the other is something else come before all others.
struct WorstElement {
  uint64_t position = 0;
  double a = 0;
  double b = 0;
  double distance = 0;  // Infinite for a mismatch of values that are not finite.
};
Result<std::vector<WorstElement>> worst_elements(const AlignedPair& pair, std::size_t count);

}  // namespace tensordiff
