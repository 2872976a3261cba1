// The numbers of one pair: what each side looks like and how far they are apart. No opinions.
//
// design: docs/metrics.md defines every field. N is the number of positions where both sides are
// finite; d = b - a. An empty optional is a metric that is not defined here, and prints as null.

#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "align/aligner.h"
#include "base/result.h"
#include "tensor/tensor.h"

namespace tensordiff {

// Of the finite elements of one side; of both parts where they are complex.
struct Stats {
  uint64_t finite = 0;
  uint64_t zeros = 0;
  uint64_t nan = 0;
  uint64_t inf = 0;
  std::optional<double> mean, std, min, max;  // std is the population's.
  std::optional<double> norm;                 // L2
};

struct Tolerance {
  double atol = 0;
  double rtol = 0;
  double rel_l2 = std::numeric_limits<double>::infinity();  // Of the whole tensor.
};

struct Diff {
  uint64_t compared = 0;  // N
  uint64_t equal = 0;     // Positions with the same value, among those compared.
  std::optional<double> max_abs;
  std::vector<uint64_t> max_abs_at;  // The first, in row-major order of the aligned shape.
  std::optional<double> a_there, b_there;
  std::optional<double> mean_abs, mse, rmse, max_rel, mean_rel, rel_l2, cosine, pcc, norm_ratio;
  std::optional<uint64_t> ulp_max;
  uint64_t nonfinite_mismatch = 0;
  uint64_t nonfinite_agreeing = 0;  // NaN with NaN, or the same infinity.
  uint64_t exceeding = 0;
  Tolerance tolerance;
  std::optional<double> rtol_needed;
};

// From `different` on, something is wrong with the pair. Nobody read the values of same_shape.
enum class Status { identical, equal, close, same_shape, different, incomparable, error };
inline constexpr std::size_t kStatuses = 7;
std::string_view name_of(Status status);

struct Comparison {
  Status status = Status::error;
  Stats a, b;
  Diff diff;
};

struct CompareOptions {
  std::optional<double> atol, rtol;  // Instead of the default of the coarser dtype.
  bool equal_nan = true;             // NaN at the same place is agreement.
  // Called with the bytes of each block before it is measured, from any thread.
  std::function<void(uint64_t bytes)> on_progress;
};

Tolerance tolerance_for(DType a, DType b, const CompareOptions& options);

// An error means that bytes could not be had: a corrupt member, a file cut short while it was read.
Result<Comparison> compare(const AlignedPair& pair, const CompareOptions& options = {});

// The statistics of one tensor alone.
Result<Stats> statistics(const View& view);

}  // namespace tensordiff
