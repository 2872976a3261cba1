// A comparison in pieces: several processes measure chunks of one pair, and one of them puts the
// pieces together, to the same digit as if it had measured all of them itself.
//
// A chunk is a fixed number of blocks of the walk over a pair. compare() merges chunks from the
// first to the last; floating-point sums depend on that order. So a piece keeps the total of each
// of its chunks, but for one that begins with the first chunk: its totals are merged already.

#pragma once

#include <span>
#include <string>
#include <vector>

#include "compare/beyond.h"
#include "compare/comparison.h"

namespace tensordiff {

// The total of some chunks.
struct Measured {
  Sums sums;
  Beyond beyond;

  void merge(const Measured& later) {
    sums.merge(later.sums);
    beyond.merge(later.beyond);
  }
};

// Slices [first, end) of a pair that is cut into `of` slices of equal cost.
struct Share {
  uint64_t first = 0, end = 1, of = 1;

  bool operator==(const Share&) const = default;
};

// Which of `units` fall into the share: [begin, end). Each unit is in the share that has the slice
// in which it begins.
struct UnitRange {
  uint64_t begin = 0, end = 0;
};
UnitRange units_in(const Share& share, uint64_t units);

// Both values at a position that the report may show.
struct Spot {
  uint64_t position = 0;
  double a = 0, b = 0;
};

struct Piece {
  uint64_t chunks = 0;           // Of the whole pair.
  uint64_t first = 0, end = 0;   // Which of them these are; [0, 1) for a pair that is never split.
  std::vector<Measured> totals;  // Of each chunk; just one, of all of them, where `first` is 0.
  std::vector<Spot> spots;
  bool by_bytes = false;    // The values cannot be decoded, and
  bool same_bytes = false;  // whether the bytes are the same is all that is known.
  std::string error;        // Why it could not be measured; empty when it could.
};

// Measures a share of a pair. A pair that is not worth splitting, or cannot be, belongs to the
// share that has its first slice; the piece of the others is empty (first == end).
Piece measure_piece(const AlignedPair& pair, const CompareOptions& options, const Share& share);

// What compare() would give, from the pieces in the order of their chunks. They may come from a
// file that somebody tampered with: what cannot be is an error.
Result<Comparison> compare_pieces(const AlignedPair& pair, const CompareOptions& options,
                                  std::span<const Piece* const> pieces, Beyond& beyond);

}  // namespace tensordiff
