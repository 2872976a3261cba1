// Kernels of convolutions that one side keeps as a matrix: the embedding of patches as [out,
// channels * height * width], with these three in any order. Alignment never moves the last axis
// into a merged one, which in other tensors would hide scrambled features.

#pragma once

#include <vector>

#include "align/aligner.h"

namespace tensordiff {

// One plan for each order of the kernel's axes that gives the shape of the other side. Height and
// width of one size keep their order: no framework stores width first.
std::vector<Plan> merged_kernel_plans(const Shape& a, const Shape& b);

}  // namespace tensordiff
