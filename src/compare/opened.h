// Both sides of a pair, open to be measured.

#pragma once

#include <functional>

#include "compare/pieces.h"
#include "compare/reduce.h"
#include "tensor/reader.h"

namespace tensordiff {

// How many blocks one task measures. Fixed, because how sums are grouped shows in their last bits.
inline constexpr uint64_t kChunkBlocks = 16;

// Whether only the bytes can be compared, because a type is not decoded.
bool is_by_bytes(const AlignedPair& pair);
Result<Comparison> compare_stored(const AlignedPair& pair);

struct Opened {
  Reader a, b;

  static Result<Opened> open(const AlignedPair& pair);

  // The totals of the chunks that `range` picks, given how many there are.
  std::vector<Measured> measure(const Tolerance& tolerance, const CompareOptions& options,
                                const std::function<ChunkRange(uint64_t chunks)>& range) const;
  // The total of all of them, by the tolerance in force.
  Measured measure_all(const AlignedPair& pair, const CompareOptions& options) const;
  // An error where a file was cut short meanwhile.
  Result<void> intact() const;
};

}  // namespace tensordiff
