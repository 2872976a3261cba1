// Tensors whose elements lie in a row, but in several sources one after the other: a parameter that
// ZeRO cut into one piece for each rank.

#pragma once

#include "tensor/tensor.h"

namespace tensordiff {

// Elements [first, first + count) of the tensor, in row-major order, are those of `source` from
// element `offset` on. Adds the parts of `view` that say so: a range is at most two boxes for each
// axis. The caller has checked that both ranges fit.
void add_flat_part(View& view, uint64_t first, uint64_t count, const ByteSource& source,
                   uint64_t offset);

}  // namespace tensordiff
