// Whether the values of a tensor lie on grids, as rounding to a few bits with a scale for each
// block leaves them, and how large these blocks are.

#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "tensor/tensor.h"

namespace tensordiff {

// Equal steps that hold all of some values.
struct Grid {
  double step = 0;
  uint64_t levels = 1;  // From the least to the largest value.
};

inline constexpr uint64_t kGridLevelsMax = 256;  // Eight bits.

// `precision` is the relative rounding of the values as stored. Nothing where they need more than
// kGridLevelsMax steps, where there are too few of them to tell, or where rounding hides the steps.
std::optional<Grid> grid_of(std::span<const double> values, double precision);

struct BlockGrid {
  std::string block;    // "tensor", "row", or how many values share a scale: "32".
  double step = 0;      // In the middle of those sampled.
  uint64_t levels = 0;  // The most that were seen.
};

// The largest blocks of which nearly all that were sampled lie on a grid each.
Result<std::optional<BlockGrid>> find_blocks(const View& view);

}  // namespace tensordiff
