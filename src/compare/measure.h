// Measures a range of a pair: fetches elements and measures them tile by tile. Ranges may be
// measured on any thread, in any order; whoever merges the Sums does so in index order.

#pragma once

#include <array>
#include <optional>

#include "compare/beyond.h"
#include "compare/code_pairs.h"
#include "compare/tile_sums.h"
#include "compare/traversal.h"
#include "tensor/reader.h"

namespace tensordiff {

class Meter {
 public:
  // The readers must outlive the meter; both views have one shape.
  Meter(const Reader& a, const Reader& b, Threshold limit);

  uint64_t blocks() const { return walk_.blocks(); }

  // The sums of one block. `best` is the largest of the blocks before it that it will be merged
  // with: what does not beat it may be left out. Notes in `beyond` which tiles have elements
  // beyond tolerance.
  Sums measure(uint64_t block, const kernels::Best& best, Beyond& beyond) const;

 private:
  // A whole block of codes, all at once.
  Sums measure_codes(uint64_t block, const Traversal::Block& elements, const kernels::Best& best,
                     Beyond& beyond) const;
  RawTile tile_at(const Traversal::Block& elements, std::size_t done) const;

  // The largest |d| of each tile of a block.
  using TileMaxima = std::array<double, kBlockElements / kTileElements>;
  uint64_t first_position(uint64_t block, const Traversal::Block& elements,
                          const TileMaxima& maxima) const;

  Traversal walk_;
  DType dtype_a_;
  DType dtype_b_;
  Threshold limit_;
  Arithmetic arithmetic_;
  std::optional<CodePairs> codes_;  // Of a type that has so few values.
};

// The moments of elements [first, first + count) of one tensor.
Moments measure_one(const Reader& reader, uint64_t first, std::size_t count);

}  // namespace tensordiff
