// What is in a checkpoint and is no weight: optimizer state, counters, masks, position tables,
// constants of a graph, numbers of a configuration. One side may have it without being different.

#pragma once

#include "tensor/catalog.h"

namespace tensordiff {

// Says of each such tensor what it is (Tensor::auxiliary). In dumps nothing is: what modules put
// out is all there is.
void mark_auxiliary(Catalog& a, Catalog& b);

}  // namespace tensordiff
