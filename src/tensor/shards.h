// What several ranks hold of one tensor, before anybody knows how it fits together.

#pragma once

#include <vector>

#include "tensor/tensor.h"

namespace tensordiff {

// The shards of a tensor without those that are copies of an earlier one, as a sample of their
// values tells; the tensor itself where it is not in pieces. Together they hold its elements once,
// unless the ranks hold summands.
std::vector<View> distinct_shards(const Tensor& tensor);

}  // namespace tensordiff
