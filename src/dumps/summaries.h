// Statistics in place of tensors: maximum, minimum, mean and the like.

#pragma once

#include <string>
#include <vector>

#include "tensor/catalog.h"

namespace tensordiff {

// Whether a side has statistics of tensors, and nothing else.
bool has_statistics(const Catalog& catalog);

// Gives both sides the same statistics, where one has nothing else: the other is computed, and of
// two kinds those are kept that both have. Says so in a note; false where both have tensors.
bool summarise_both(Catalog& a, Catalog& b, std::vector<std::string>& notes);

}  // namespace tensordiff
