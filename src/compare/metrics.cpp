#include "compare/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compare/status_words.h"
#include "compare/ulp.h"

namespace tensordiff {
namespace {

// Cosine, Pearson's r and the ratios of norms, from the centred sums.
void fill_angles(const Sums& sums, Diff& diff) {
  const double n = static_cast<double>(sums.values);
  const double squares_a = sums.m2_a + n * sums.mean_a * sums.mean_a;
  const double squares_b = sums.m2_b + n * sums.mean_b * sums.mean_b;
  const double product = sums.co + n * sums.mean_a * sums.mean_b;
  const double norm_a = std::sqrt(squares_a);
  const double norm_b = std::sqrt(squares_b);
  // Equal values point the same way, however their sums are rounded.
  const auto angle = [&](double both, double one, double other) {
    return sums.equal == sums.count ? 1.0 : std::clamp(both / one / other, -1.0, 1.0);
  };
  if (norm_a > 0 && norm_b > 0) diff.cosine = angle(product, norm_a, norm_b);
  if (sums.m2_a > 0 && sums.m2_b > 0)
    diff.pcc = angle(sums.co, std::sqrt(sums.m2_a), std::sqrt(sums.m2_b));
  if (norm_a > 0) diff.norm_ratio = norm_b / norm_a;
  if (norm_a > 0)
    diff.rel_l2 = std::sqrt(sums.d_squared) / norm_a;
  else
    diff.rel_l2 = norm_b > 0 ? std::numeric_limits<double>::infinity() : 0;
}

void fill_distances(const Sums& sums, const Shape& shape, Diff& diff) {
  const double n = static_cast<double>(sums.count);
  diff.max_abs = sums.max_abs;
  diff.max_abs_at = index_at(shape, sums.max_abs_at);
  diff.mean_abs = sums.d_abs / n;
  diff.mse = sums.d_squared / n;
  diff.rmse = std::sqrt(*diff.mse);
  diff.max_rel = sums.max_rel;
  diff.mean_rel = sums.d_relative / n;
}

// A NaN or an infinity on one side is farther off than any number.
uint64_t worst_position(const Sums& sums, const CompareOptions& options) {
  const uint64_t mismatch =
      options.equal_nan ? sums.mismatch_at : std::min(sums.mismatch_at, sums.agreeing_at);
  return mismatch == UINT64_MAX ? sums.max_abs_at : mismatch;
}

Diff diff_from(const Sums& sums, const AlignedPair& pair, const Tolerance& tolerance,
               const CompareOptions& options) {
  Diff diff;
  diff.tolerance = tolerance;
  diff.compared = sums.count;
  diff.equal = sums.equal;
  diff.exceeding = sums.exceeding;
  diff.nonfinite_agreeing = options.equal_nan ? sums.agreeing : 0;
  diff.nonfinite_mismatch = sums.mismatch + (options.equal_nan ? 0 : sums.agreeing);
  if (diff.nonfinite_mismatch == 0 && std::isfinite(sums.rtol_needed))
    diff.rtol_needed = sums.rtol_needed;
  if (sums.count > 0) {
    fill_distances(sums, pair.a.shape, diff);
    fill_angles(sums, diff);
    if (have_steps(pair.a.dtype, pair.b.dtype)) diff.ulp_max = sums.ulp;
  }
  if (diff.nonfinite_mismatch > 0)
    diff.max_abs_at = index_at(pair.a.shape, worst_position(sums, options));
  return diff;
}

Status status_of(const Diff& diff, const AlignedPair& pair) {
  if (diff.nonfinite_mismatch == 0 && diff.equal == diff.compared) {
    const bool same_form = pair.a.dtype == pair.b.dtype && pair.steps.empty();
    return same_form ? Status::identical : Status::equal;
  }
  const bool within = diff.exceeding == 0 && diff.rel_l2.value_or(0) <= diff.tolerance.rel_l2;
  return within && diff.nonfinite_mismatch == 0 ? Status::close : Status::different;
}

// In a block the small values are off by as much as the large ones, so a share of each value is no
// measure. What is: no value is off by more than one step of the largest, nor the tensor as a whole
// by more than a step. Where all values may share one scale, rounding is off by up to half a step
// of the largest, which may be more than that share of the usual value.
Tolerance block_tolerance(const Sums& sums, DType dtype) {
  const double step = info(dtype).rtol;
  if (sums.a.count == 0) return {0, 0, step};
  const double largest = std::max(std::abs(sums.a.min), std::abs(sums.a.max));
  const double usual =
      std::sqrt(sums.a.m2 / static_cast<double>(sums.a.count) + sums.a.mean * sums.a.mean);
  const double spread = dtype == DType::int8_scaled && usual > 0 ? largest / usual / 2 : 0;
  return {step * largest, 0, step * std::max(1.0, spread)};
}

}  // namespace

std::string_view name_of(Status status) { return kStatusWords[static_cast<std::size_t>(status)]; }

Stats stats_from(const Moments& moments) {
  Stats stats;
  stats.finite = moments.count;
  stats.zeros = moments.zeros;
  stats.nan = moments.nan;
  stats.inf = moments.inf;
  if (moments.count == 0) return stats;
  const double n = static_cast<double>(moments.count);
  stats.mean = moments.mean;
  stats.std = std::sqrt(moments.m2 / n);
  stats.min = moments.min;
  stats.max = moments.max;
  stats.norm = std::sqrt(moments.m2 + n * moments.mean * moments.mean);
  return stats;
}

Tolerance tolerance_for(DType a, DType b, const CompareOptions& options) {
  const DTypeInfo& type = info(coarser(a, b));
  return {options.atol.value_or(type.atol), options.rtol.value_or(type.rtol)};
}

bool tolerance_by_values(const AlignedPair& pair, const CompareOptions& options) {
  return is_in_blocks(coarser(pair.a.dtype, pair.b.dtype)) && !options.atol && !options.rtol;
}

Tolerance final_tolerance(const AlignedPair& pair, const Sums& sums,
                          const CompareOptions& options) {
  return tolerance_by_values(pair, options)
             ? block_tolerance(sums, coarser(pair.a.dtype, pair.b.dtype))
             : tolerance_for(pair.a.dtype, pair.b.dtype, options);
}

Result<Comparison> finish(const AlignedPair& pair, const CompareOptions& options, Measured measured,
                          const std::function<Result<Spot>(uint64_t)>& there, Beyond& beyond) {
  const Sums& sums = measured.sums;
  Comparison comparison;
  comparison.a = stats_from(sums.a);
  comparison.b = stats_from(sums.b);
  comparison.diff = diff_from(sums, pair, final_tolerance(pair, sums, options), options);
  if (comparison.diff.max_abs || comparison.diff.nonfinite_mismatch > 0) {
    const Spot worst = TRY(there(worst_position(sums, options)));
    comparison.diff.a_there = worst.a;
    comparison.diff.b_there = worst.b;
  }
  comparison.status = status_of(comparison.diff, pair);
  beyond = std::move(measured.beyond);
  // Where NaN is no agreement, it lies in other tiles, too.
  beyond.all = beyond.all && (options.equal_nan || sums.agreeing == 0);
  return comparison;
}

}  // namespace tensordiff
