// Where the elements beyond tolerance lie in a pair: what the one pass over it notes by the way, so
// that whoever explains the pair need not walk over all of it again.
//
// The pass notes runs of neighbouring tiles that hold such elements. Outside of them every element
// is within tolerance. Elements are told one by one when somebody asks for them, by reading those
// tiles again.

#pragma once

#include <cstdint>
#include <vector>

#include "align/aligner.h"
#include "base/result.h"
#include "compare/kernels/tile.h"

namespace tensordiff {

struct CompareOptions;
struct Comparison;
struct Diff;

// Tiles in the order of the walk, which depends on the two views alone.
struct TileRun {
  uint64_t first = 0, end = 0;
  double d_squared = 0;  // Sum of (b - a)² over finite pairs.
  uint64_t unequal = 0;  // Elements that are not the same, NaN and infinities that disagree too.
};

// More runs than this are no region that a sentence could name, and memory must not grow with the
// tensor. Both ends of each run are 512 KiB of f32 to read again.
inline constexpr std::size_t kTileRunsMax = 128;

struct Beyond {
  std::vector<TileRun> runs;
  bool all = true;  // Else there are more runs than are kept.

  void add(uint64_t tile, const Sums& sums);
  void merge(const Beyond& later);
};

// Like compare() of comparison.h, and notes where what is beyond tolerance lies.
Result<Comparison> compare(const AlignedPair& pair, const CompareOptions& options, Beyond& beyond);

// One element beyond tolerance, by its row-major position in the compared shape.
struct BeyondElement {
  uint64_t position = 0;
  double a = 0, b = 0;
};

struct BeyondElements {
  std::vector<BeyondElement> elements;  // In order of their positions.
  std::vector<TileRun> unread;          // What more than `elements_max` elements lie in.
  bool flat = true;  // Tile i of `unread` holds the positions from i * kTileElements on.
};

// Reads the runs again, the ends of each first, as far as `elements_max` allows.
Result<BeyondElements> elements_beyond(const AlignedPair& pair, const Diff& diff,
                                       const Beyond& beyond, uint64_t elements_max);

}  // namespace tensordiff
