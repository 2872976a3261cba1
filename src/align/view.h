// Other ways to look at the same elements. Each function gives a new View on the same sources and
// touches no element; the caller has checked that the arguments fit the shape.

#pragma once

#include <span>

#include "align/aligner.h"
#include "tensor/tensor.h"

namespace tensordiff {

// Without an axis of size 1.
View squeezed(View view, std::size_t axis);

// Axis i of the result is axis order[i] of the view.
View permuted(const View& view, std::span<const uint64_t> order);

// One axis as several, the last of them fastest. Their product is the size of the axis, not zero.
View split(const View& view, std::size_t axis, std::span<const uint64_t> sizes);

// Only the entries [first, first + size) of an axis.
View narrowed(const View& view, std::size_t axis, uint64_t first, uint64_t size);

// Only the first `size` entries of an axis.
View truncated(View view, std::size_t axis, uint64_t size);

// What a step says, done.
View apply(const Step& step, View view);

}  // namespace tensordiff
