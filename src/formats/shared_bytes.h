// Which tensors of a file lie in the same bytes of it: tied weights, and views of one another.

#pragma once

#include "tensor/catalog.h"

namespace tensordiff {

// One for each tensor that shares bytes with one before it. Tensors that are unpacked or made when
// they are read lie nowhere and are left out.
std::vector<Problem> shared_bytes(const Catalog& catalog);

}  // namespace tensordiff
