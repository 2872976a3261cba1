// Whether two inputs hold weights, and not what modules put out.

#pragma once

#include "tensor/catalog.h"

namespace tensordiff {

// Names of one side are enough: whoever compares a checkpoint compares it with a checkpoint.
bool are_checkpoints(const Catalog& a, const Catalog& b);

}  // namespace tensordiff
