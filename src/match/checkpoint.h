// Whether two inputs hold weights, and not what modules put out.

#pragma once

#include "tensor/catalog.h"

namespace tensordiff {

// By what its name says.
bool is_weight(const Tensor& tensor);

// Names of one side are enough: whoever compares a checkpoint compares it with a checkpoint.
// Whether both hold what modules gave in a run.
bool are_dumps(const Catalog& a, const Catalog& b);

bool are_checkpoints(const Catalog& a, const Catalog& b);

}  // namespace tensordiff
