// Sums over many blocks, in parallel and yet always in the same order.

#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/parallel.h"

namespace tensordiff {

// Merges add(block, total) over all blocks. `chunk` blocks in a row make one task and one partial
// total; it is fixed by the caller, because how sums are grouped shows in their last bits.
template <class Total>
Total reduce_blocks(uint64_t blocks, uint64_t chunk, const Total& empty,
                    const std::function<void(uint64_t, Total&)>& add) {
  const auto chunk_total = [&](uint64_t which) {
    Total total = empty;
    const uint64_t end = std::min(blocks, (which + 1) * chunk);
    for (uint64_t block = which * chunk; block < end; ++block) add(block, total);
    return total;
  };
  const uint64_t chunks = (blocks + chunk - 1) / chunk;
  if (chunks <= 1) return chunks == 0 ? empty : chunk_total(0);

  std::vector<Total> totals(chunks, empty);
  for_each_index(chunks, [&](std::size_t which) { totals[which] = chunk_total(which); });
  Total total = empty;
  for (const Total& part : totals) total.merge(part);
  return total;
}

}  // namespace tensordiff
