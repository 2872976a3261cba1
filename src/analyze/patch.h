// A part of a tensor that is small enough to hold: some of its rows and columns, or all of them.
//
// The same shape gives the same places, so patches of a and b lie on each other. Places are spread
// over the whole tensor, one in each equal stretch, and never twice.

#pragma once

#include <cstdint>
#include <vector>

#include "analyze/linear_algebra.h"
#include "base/result.h"
#include "tensor/reader.h"

namespace tensordiff {

struct PatchSize {
  std::size_t rows = 96;
  std::size_t columns = 192;  // Taken in runs of kPatchRun.
};
inline constexpr std::size_t kPatchRun = 16;

// Up to `wanted` places below `count`, ascending and all different.
std::vector<uint64_t> spread(uint64_t count, std::size_t wanted);

// Rows and columns as extents_of() has them. Values that are not finite are 0.
Result<Dense> read_patch(const View& view, const PatchSize& size = {});

// Whether a patch of that size leaves anything out.
bool is_sampled(const Shape& shape, const PatchSize& size = {});

// About `wanted` values in runs of 64, from all over the tensor, in their order. Complex: the real
// parts.
Result<std::vector<double>> read_values(const View& view, std::size_t wanted);

}  // namespace tensordiff
