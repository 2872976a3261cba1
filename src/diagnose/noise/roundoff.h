// The unit roundoff of what a side holds: by its values, not by its dtype alone.

#pragma once

#include "tensor/tensor.h"

namespace tensordiff {

// How many bits of fraction the values of a view need, by a sample; those of its dtype where that
// does not tell: few values, or whole numbers, need few bits in any format.
int bits_needed(const View& view);

// Of the narrowest format that holds such values.
double roundoff_of(DType dtype, int bits);

// The unit roundoff of a view's values: of its dtype, or of a narrower one that holds them all, as
// in a bf16 run that was saved as f32.
double roundoff_of(const View& view);

// How many roundings one step adds up.
double steps_of(double roundoff);

}  // namespace tensordiff
