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

// All axes as one, where the elements lie in even steps.
bool can_flatten(const View& view);
View flattened(View view);

// Only the first `size` entries of an axis.
View truncated(View view, std::size_t axis, uint64_t size);

// Only the entries [first, first + size) of an axis.
View narrowed(View view, std::size_t axis, uint64_t first, uint64_t size);

// Views that agree in dtype and in all other axes, one after the other along an axis.
View concatenated(std::span<const View> views, std::size_t axis);

// Views of one shape and dtype, which encode() knows, added up.
View summed(std::span<const View> views);

// What a step says, done. Not for those that put ranks together: see align/whole.h.
View apply(const Step& step, View view);

// All steps of a plan, with a note of what they leave out. The shapes are those it was made for.
AlignedPair carry_out(const Plan& plan, View a, View b);

}  // namespace tensordiff
