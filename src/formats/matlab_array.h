// The numbers of a MATLAB array: stored by column, perhaps in a smaller type than the array's own,
// and the imaginary parts apart from the real ones.

#pragma once

#include "formats/format.h"
#include "tensor/tensor.h"

namespace tensordiff {

struct MatlabNumbers {
  DType dtype = DType::f64;   // What the array is of: its parts, where it is complex.
  DType stored = DType::f64;  // What its numbers are stored as.
  bool swapped = false;
  Shape shape;
  Bytes real;
  Bytes imaginary;  // Empty where there are none.
  bool complex = false;
  bool logical = false;  // Of a sparse matrix.
};

// A view of the numbers where they lie, or of what they are converted to when they are read.
Result<View> matlab_view(const MatlabNumbers& numbers);

// The same for a sparse matrix: `rows` and `starts` are i32, one start for each column and one
// more.
Result<View> matlab_sparse_view(MatlabNumbers numbers, const Bytes& rows, const Bytes& starts,
                                const Limits& limits);

// The same for a sparse matrix of version 4, whose table `numbers` is.
Result<View> matlab_sparse4_view(const MatlabNumbers& numbers, const Limits& limits);

}  // namespace tensordiff
