// From two views of one shape to a Comparison: fixed chunks measured in parallel, merged in index
// order, and turned into metrics once.

#include <algorithm>

#include "base/byte_owner.h"
#include "compare/beyond.h"
#include "compare/comparison.h"
#include "compare/measure.h"
#include "compare/metrics.h"
#include "compare/opened.h"
#include "tensor/stored.h"

namespace tensordiff {

bool is_by_bytes(const AlignedPair& pair) {
  return is_undecoded(pair.a.dtype) || is_undecoded(pair.b.dtype);
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
  if (!of_a.intact()) return Error("A: {}", damage_of(of_a));
  if (!of_b.intact()) return Error("B: {}", damage_of(of_b));
  Comparison comparison;
  comparison.status = same ? Status::identical : Status::different;
  return comparison;
}

std::vector<Measured> Opened::measure(
    const Tolerance& tolerance, const CompareOptions& options,
    const std::function<ChunkRange(uint64_t chunks)>& range) const {
  const Meter meter(a, b, {tolerance.atol, tolerance.rtol});
  const uint64_t bytes_per_pair = item_bytes(a.view().dtype) + item_bytes(b.view().dtype);
  return chunk_totals<Measured>(
      meter.blocks(), kChunkBlocks, range(chunk_count(meter.blocks(), kChunkBlocks)), {},
      [&](uint64_t block, Measured& total) {
        if (options.on_progress) options.on_progress(kBlockElements * bytes_per_pair);
        const Sums& so_far = total.sums;
        total.sums.merge(meter.measure(block, {so_far.max_abs, so_far.max_rel, so_far.rtol_needed},
                                       total.beyond));
      });
}

Measured Opened::measure_all(const AlignedPair& pair, const CompareOptions& options) const {
  const auto all = [&](const Tolerance& tolerance) {
    return merged<Measured>(measure(tolerance, options,
                                    [](uint64_t chunks) {
                                      return ChunkRange{0, chunks};
                                    }),
                            {});
  };
  Measured measured = all(tolerance_for(pair.a.dtype, pair.b.dtype, options));
  if (!tolerance_by_values(pair, options)) return measured;
  // Known only now. Where nothing can exceed it, there is nothing to count again.
  Sums& sums = measured.sums;
  const Tolerance tolerance = final_tolerance(pair, sums, options);
  if (sums.max_abs > tolerance.atol || sums.mismatch > 0) return all(tolerance);
  sums.exceeding = 0, sums.rtol_needed = 0, measured.beyond = {};
  return measured;
}

Result<Opened> Opened::open(const AlignedPair& pair) {
  Reader a = TRY(Reader::open(pair.a).in("A"));
  Reader b = TRY(Reader::open(pair.b).in("B"));
  return Opened{std::move(a), std::move(b)};
}

Result<void> Opened::intact() const {
  if (!a.intact()) return Error("A: {}", damage_of(a.view()));
  if (!b.intact()) return Error("B: {}", damage_of(b.view()));
  return {};
}

Result<Comparison> compare(const AlignedPair& pair, const CompareOptions& options) {
  Beyond unasked;
  return compare(pair, options, unasked);
}

Result<Comparison> compare(const AlignedPair& pair, const CompareOptions& options, Beyond& beyond) {
  assert(pair.a.shape == pair.b.shape);
  if (is_by_bytes(pair)) return compare_stored(pair);
  const Opened both = TRY(Opened::open(pair));
  Measured measured = both.measure_all(pair, options);
  TRY(both.intact());
  const auto there = [&](uint64_t at) -> Result<Spot> {
    return Spot{at, both.a.value(at), both.b.value(at)};
  };
  return finish(pair, options, std::move(measured), there, beyond);
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
  if (!reader.intact()) return Error("{}", damage_of(view));
  return stats_from(moments);
}

}  // namespace tensordiff
