// From two views of one shape to a Comparison: fixed chunks measured in parallel, merged in index
// order, and turned into metrics once.

#include <algorithm>
#include <cmath>
#include <limits>

#include "compare/beyond.h"
#include "compare/comparison.h"
#include "compare/measure.h"
#include "compare/reduce.h"
#include "compare/status_words.h"
#include "compare/ulp.h"

namespace tensordiff {
namespace {

// How many blocks one task measures. Fixed, because how sums are grouped shows in their last bits.
constexpr uint64_t kChunkBlocks = 16;

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
// by more than a step.
Tolerance block_tolerance(const Sums& sums, double step) {
  const double largest = std::max(std::abs(sums.a.min), std::abs(sums.a.max));
  return {sums.a.count == 0 ? 0 : step * largest, 0, step};
}

// Whole tensors whose values cannot be had: by their bytes.
Result<Comparison> compare_stored(const AlignedPair& pair) {
  const View& a = pair.a;
  const View& b = pair.b;
  const bool alike = a.dtype == b.dtype && a.swapped == b.swapped;
  if (!alike || a.parts.size() != 1 || b.parts.size() != 1 || !pair.steps.empty())
    return Error("values of {} are not decoded",
                 name_of(is_undecoded(a.dtype) ? a.dtype : b.dtype));
  const Bytes of_a = TRY(a.parts[0].source.open().in("A"));
  const Bytes of_b = TRY(b.parts[0].source.open().in("B"));
  const bool same = std::ranges::equal(of_a.view, of_b.view);
  if (!of_a.intact() || !of_b.intact()) return Error("a file was cut short while it was read");
  Comparison comparison;
  comparison.status = same ? Status::identical : Status::different;
  return comparison;
}

struct Measured {
  Sums sums;
  Beyond beyond;

  void merge(const Measured& later) {
    sums.merge(later.sums);
    beyond.merge(later.beyond);
  }
};

Measured measure(const Reader& a, const Reader& b, const Tolerance& tolerance,
                 const CompareOptions& options) {
  const Meter meter(a, b, {tolerance.atol, tolerance.rtol});
  const uint64_t bytes_per_pair = item_bytes(a.view().dtype) + item_bytes(b.view().dtype);
  return reduce_blocks<Measured>(
      meter.blocks(), kChunkBlocks, {}, [&](uint64_t block, Measured& total) {
        if (options.on_progress) options.on_progress(kBlockElements * bytes_per_pair);
        const Sums& so_far = total.sums;
        total.sums.merge(meter.measure(block, {so_far.max_abs, so_far.max_rel, so_far.rtol_needed},
                                       total.beyond));
      });
}

}  // namespace

std::string_view name_of(Status status) { return kStatusWords[static_cast<std::size_t>(status)]; }

Tolerance tolerance_for(DType a, DType b, const CompareOptions& options) {
  const DTypeInfo& type = info(coarser(a, b));
  return {options.atol.value_or(type.atol), options.rtol.value_or(type.rtol)};
}

Result<Comparison> compare(const AlignedPair& pair, const CompareOptions& options) {
  Beyond unasked;
  return compare(pair, options, unasked);
}

Result<Comparison> compare(const AlignedPair& pair, const CompareOptions& options, Beyond& beyond) {
  assert(pair.a.shape == pair.b.shape);
  const DType coarse = coarser(pair.a.dtype, pair.b.dtype);
  if (is_undecoded(pair.a.dtype) || is_undecoded(pair.b.dtype)) return compare_stored(pair);
  const Reader a = TRY(Reader::open(pair.a).in("A"));
  const Reader b = TRY(Reader::open(pair.b).in("B"));
  Tolerance tolerance = tolerance_for(pair.a.dtype, pair.b.dtype, options);
  Measured measured = measure(a, b, tolerance, options);
  Sums& sums = measured.sums;
  if (is_in_blocks(coarse) && !options.atol && !options.rtol) {
    // Known only now. Where nothing can exceed it, there is nothing to count again.
    tolerance = block_tolerance(sums, info(coarse).rtol);
    if (sums.max_abs <= tolerance.atol && sums.mismatch == 0)
      sums.exceeding = 0, sums.rtol_needed = 0, measured.beyond = {};
    else
      measured = measure(a, b, tolerance, options);
  }
  if (!a.intact()) return Error("A: the file was cut short while it was read");
  if (!b.intact()) return Error("B: the file was cut short while it was read");

  Comparison comparison;
  comparison.a = stats_from(sums.a);
  comparison.b = stats_from(sums.b);
  comparison.diff = diff_from(sums, pair, tolerance, options);
  if (comparison.diff.max_abs || comparison.diff.nonfinite_mismatch > 0) {
    const uint64_t worst = worst_position(sums, options);
    comparison.diff.a_there = a.value(worst);
    comparison.diff.b_there = b.value(worst);
  }
  comparison.status = status_of(comparison.diff, pair);
  beyond = std::move(measured.beyond);
  // Where NaN is no agreement, it lies in other tiles, too.
  beyond.all = beyond.all && (options.equal_nan || sums.agreeing == 0);
  return comparison;
}

Result<Stats> statistics(const View& view) {
  const Reader reader = TRY(Reader::open(view));
  const uint64_t elements = view.elements();
  const uint64_t blocks = (elements + kBlockElements - 1) / kBlockElements;
  const Moments moments =
      reduce_blocks<Moments>(blocks, kChunkBlocks, {}, [&](uint64_t block, Moments& total) {
        const uint64_t first = block * kBlockElements;
        total.merge(
            measure_one(reader, first, std::min<uint64_t>(kBlockElements, elements - first)));
      });
  if (!reader.intact()) return Error("the file was cut short while it was read");
  return stats_from(moments);
}

}  // namespace tensordiff
