#include "compare/measure.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tensordiff {
namespace {

constexpr std::size_t kTile = kTileElements;
// The tables of CodePairs take about as long to make as to count so many blocks.
constexpr uint64_t kBlocksOfCodes = 8;
constexpr uint64_t kCrowd = 128;  // With more than one of so many, too few vectors have none.

// Where elements that do not lie together are gathered, for each thread.
struct Gathered {
  std::vector<std::byte> a, b;
};

Gathered& buffers() {
  thread_local Gathered blocks;
  return blocks;
}

bool is_narrow(DType dtype) { return is_float(dtype) && info(dtype).bits <= 16; }

}  // namespace

Meter::Meter(const Reader& a, const Reader& b, Threshold limit)
    : walk_(a, b),
      dtype_a_(a.view().dtype),
      dtype_b_(b.view().dtype),
      limit_(limit),
      arithmetic_(arithmetic_for(dtype_a_, dtype_b_)) {
  if (dtype_a_ == dtype_b_ && CodePairs::are_codes(dtype_a_) && walk_.flat() &&
      walk_.blocks() >= kBlocksOfCodes)
    codes_.emplace(dtype_a_, limit_);
}

RawTile Meter::tile_at(const Traversal::Block& elements, std::size_t done) const {
  return {elements.a + done * item_bytes(dtype_a_),
          elements.b + done * item_bytes(dtype_b_),
          dtype_a_,
          dtype_b_,
          {std::min(kTile, elements.count - done), done, limit_, {}, {}}};
}

Sums Meter::measure_codes(uint64_t block, const Traversal::Block& elements,
                          const kernels::Best& best, Beyond& beyond) const {
  Sums sums = codes_->measure(elements.a, elements.b, elements.count, best);
  for (uint64_t Sums::*at : {&Sums::mismatch_at, &Sums::agreeing_at, &Sums::max_abs_at})
    if (sums.*at != UINT64_MAX) sums.*at = walk_.position(block, sums.*at);
  if (sums.exceeding + sums.mismatch == 0) return sums;
  constexpr std::size_t kTiles = kBlockElements / kTile;
  std::vector<std::size_t> may;
  for (std::size_t done = 0; done < elements.count; done += kTile)
    if (sums.mismatch > 0 || codes_->may_exceed(elements.a + done, elements.b + done,
                                                std::min(kTile, elements.count - done)))
      may.push_back(done);
  if (may.size() == kTiles)
    beyond.merge({{{block * kTiles, (block + 1) * kTiles, sums.d_squared,
                    sums.count - sums.equal + sums.mismatch}},
                  true});
  else
    for (const std::size_t done : may)
      beyond.add(block * kTiles + done / kTile, measure_tile(arithmetic_, tile_at(elements, done)));
  return sums;
}

Sums Meter::measure(uint64_t block, const kernels::Best& best, Beyond& beyond) const {
  const auto elements = walk_.fetch(block, buffers().a, buffers().b);
  if (codes_) return measure_codes(block, elements, best, beyond);
  // Out of order, an equal maximum may still come first in the tensor, so it is not left out.
  const auto beaten = [&](double most) { return walk_.flat() ? most : std::nextafter(most, -1.0); };
  TileMaxima maxima;
  Sums sums;
  const std::size_t item_a = item_bytes(dtype_a_);
  const std::size_t item_b = item_bytes(dtype_b_);
  const bool narrow = is_narrow(dtype_a_) && is_narrow(dtype_b_);
  bool crowded = false;
  for (std::size_t done = 0; done < elements.count; done += kTile) {
    const kernels::Best so_far{beaten(std::max(sums.max_abs, best.max_abs)),
                               std::max(sums.max_rel, best.max_rel),
                               std::max(sums.rtol_needed, best.rtol_needed)};
    const std::byte* at_a = elements.a + done * item_a;
    const std::byte* at_b = elements.b + done * item_b;
    const kernels::Ahead ahead{at_a + kTile * item_a, at_b + kTile * item_b, item_a, item_b};
    const kernels::Tile tile{
        std::min(kTile, elements.count - done), done, limit_, so_far, ahead, narrow, crowded};
    const Sums part = measure_tile(arithmetic_, {at_a, at_b, dtype_a_, dtype_b_, tile});
    maxima[done / kTile] = part.max_abs;
    crowded = part.exceeding > part.count / kCrowd;
    beyond.add((block * kBlockElements + done) / kTile, part);
    sums.merge(part);
  }
  for (uint64_t Sums::*at : {&Sums::mismatch_at, &Sums::agreeing_at})
    if (sums.*at != UINT64_MAX) sums.*at = walk_.position(block, sums.*at);
  if (walk_.flat()) {
    sums.max_abs_at = walk_.position(block, sums.max_abs_at);
  } else if (sums.max_abs >= best.max_abs && sums.max_abs >= 0) {
    sums.max_abs_at = first_position(block, elements, maxima);
  }
  return sums;
}

// The first position, in row-major order, at which a block of another order has its maximum.
uint64_t Meter::first_position(uint64_t block, const Traversal::Block& elements,
                               const TileMaxima& maxima) const {
  const std::size_t tiles = (elements.count + kTile - 1) / kTile;
  const double most = *std::max_element(maxima.begin(), maxima.begin() + tiles);
  uint64_t first = UINT64_MAX;
  for (std::size_t tile = 0; tile < tiles; ++tile) {
    if (maxima[tile] != most) continue;
    const std::size_t done = tile * kTile;
    const RawTile raw = tile_at(elements, done);
    double apart[kTile];
    distances(arithmetic_, raw, apart);
    // Nothing in a box comes before its first element.
    if (done == 0 && apart[0] == most) return walk_.position(block, 0);
    for (std::size_t i = 0; i < raw.count(); ++i)
      if (apart[i] == most) first = std::min(first, walk_.position(block, done + i));
  }
  return first;
}

Moments measure_one(const Reader& reader, uint64_t first, std::size_t count) {
  const DType dtype = reader.view().dtype;
  const std::byte* elements = reader.raw(first, count, buffers().a);
  Moments moments;
  for (std::size_t done = 0; done < count; done += kTile) {
    const std::byte* at = elements + done * item_bytes(dtype);
    moments.merge(measure_elements(dtype, at, std::min(kTile, count - done)));
  }
  return moments;
}

}  // namespace tensordiff
