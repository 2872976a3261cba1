// Sums over many blocks, in parallel and yet always in the same order.

#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/parallel.h"

namespace tensordiff {

// A range of chunks.
struct ChunkRange {
  uint64_t first = 0, end = 0;
};

inline uint64_t chunk_count(uint64_t blocks, uint64_t chunk) {
  return (blocks + chunk - 1) / chunk;
}

// The totals of add(block, total) over the blocks of each chunk of a range. `chunk` blocks in a row
// make one task and one total; it is fixed by the caller, because how sums are grouped shows in
// their last bits.
template <class Total>
std::vector<Total> chunk_totals(uint64_t blocks, uint64_t chunk, ChunkRange range,
                                const Total& empty,
                                const std::function<void(uint64_t, Total&)>& add) {
  std::vector<Total> totals(range.end - range.first, empty);
  const auto fill = [&](std::size_t at) {
    const uint64_t which = range.first + at;
    const uint64_t end = std::min(blocks, (which + 1) * chunk);
    for (uint64_t block = which * chunk; block < end; ++block) add(block, totals[at]);
  };
  if (totals.size() == 1)
    fill(0);
  else
    for_each_index(totals.size(), fill);
  return totals;
}

// The total of chunks from the first one on.
template <class Total>
Total merged(std::vector<Total> totals, const Total& empty) {
  if (totals.size() == 1) return std::move(totals[0]);
  Total total = empty;
  for (const Total& part : totals) total.merge(part);
  return total;
}

// Merges add(block, total) over all blocks.
template <class Total>
Total reduce_blocks(uint64_t blocks, uint64_t chunk, const Total& empty,
                    const std::function<void(uint64_t, Total&)>& add) {
  const ChunkRange all{0, chunk_count(blocks, chunk)};
  return merged(chunk_totals(blocks, chunk, all, empty, add), empty);
}

}  // namespace tensordiff
