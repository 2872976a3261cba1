#include "compare/beyond.h"

#include <algorithm>
#include <cmath>

#include "compare/comparison.h"
#include "compare/traversal.h"

namespace tensordiff {
namespace {

constexpr uint64_t kTilesOfBlock = kBlockElements / kTileElements;

bool is_beyond(double a, double b, const Tolerance& tolerance) {
  if (std::isfinite(a) && std::isfinite(b))
    return std::abs(b - a) > tolerance.atol + tolerance.rtol * std::abs(a);
  return !(a == b || (std::isnan(a) && std::isnan(b)));
}

class TileReader {
 public:
  TileReader(const Reader& a, const Reader& b, const Tolerance& tolerance)
      : a_(a), b_(b), walk_(a, b), tolerance_(tolerance), elements_(a.view().elements()) {}

  bool flat() const { return walk_.flat(); }

  void read(uint64_t tile, std::vector<BeyondElement>& out) {
    const uint64_t block = tile / kTilesOfBlock;
    const std::size_t first = tile % kTilesOfBlock * kTileElements;
    if (!flat() && block != block_) {
      count_ = walk_.fetch(block, buffer_a_, buffer_b_).count;
      block_ = block;
    }
    const uint64_t start = tile * kTileElements;
    const std::size_t end = flat() ? std::min<uint64_t>(kTileElements, elements_ - start)
                                   : std::min(kTileElements, count_ - std::min(count_, first));
    if (flat()) {
      a_.values(start, end, values_a_);
      b_.values(start, end, values_b_);
    }
    for (std::size_t i = 0; i < end; ++i) {
      const uint64_t at = flat() ? start + i : walk_.position(block, first + i);
      const double a = flat() ? values_a_[i] : a_.value(at),
                   b = flat() ? values_b_[i] : b_.value(at);
      if (is_beyond(a, b, tolerance_)) out.push_back({at, a, b});
    }
  }

 private:
  const Reader& a_;
  const Reader& b_;
  Traversal walk_;
  Tolerance tolerance_;
  uint64_t elements_;
  uint64_t block_ = UINT64_MAX;
  std::size_t count_ = 0;
  std::vector<std::byte> buffer_a_, buffer_b_;
  double values_a_[kTileElements], values_b_[kTileElements];
};

}  // namespace

void Beyond::add(uint64_t tile, const Sums& sums) {
  if (sums.exceeding + sums.mismatch == 0) return;
  merge({{{tile, tile + 1, sums.d_squared, sums.count - sums.equal + sums.mismatch}}, true});
}

void Beyond::merge(const Beyond& later) {
  all = all && later.all;
  for (const TileRun& run : later.runs) {
    if (!runs.empty() && runs.back().end == run.first) {
      runs.back().end = run.end;
      runs.back().d_squared += run.d_squared;
      runs.back().unequal += run.unequal;
    } else if (runs.size() < kTileRunsMax) {
      runs.push_back(run);
    } else {
      all = false;
    }
  }
}

Result<BeyondElements> elements_beyond(const AlignedPair& pair, const Diff& diff,
                                       const Beyond& beyond, uint64_t elements_max) {
  if (is_complex(pair.a.dtype) || is_complex(pair.b.dtype))
    return Error("complex numbers are not diagnosed");
  const Reader a = TRY(Reader::open(pair.a));
  const Reader b = TRY(Reader::open(pair.b));
  TileReader reader(a, b, diff.tolerance);
  BeyondElements result;
  result.flat = reader.flat();
  uint64_t left = elements_max / kTileElements;
  const auto read = [&](uint64_t tile) {
    reader.read(tile, result.elements);
    left -= std::min<uint64_t>(left, 1);
  };
  for (const TileRun& run : beyond.runs) {
    read(run.first);
    if (run.end - run.first > 1) read(run.end - 1);
  }
  for (const TileRun& run : beyond.runs) {
    uint64_t tile = run.first + 1;
    for (; tile + 1 < run.end && left > 0; ++tile) read(tile);
    if (tile + 1 < run.end) result.unread.push_back({tile, run.end - 1, 0, 0});
  }
  if (!a.intact() || !b.intact()) return Error("a file was cut short while it was read");
  std::ranges::sort(result.elements, {}, &BeyondElement::position);
  return result;
}

}  // namespace tensordiff
