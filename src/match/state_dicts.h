// Several state dicts of one model in one file: the weights of a run and their moving average, a
// student and its teacher.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/catalog.h"

namespace tensordiff {

// Where a catalog holds the same tensors several times, under different first words of their names,
// and the other side once: the values choose which of them is meant. The others become auxiliary.
// Says which were there and which is compared; nothing where there is nothing to choose.
std::optional<std::string> choose_state_dict(Catalog& catalog, std::string_view side,
                                             const Catalog& other, bool read_values);

// Sets aside what is no weight on both sides (auxiliary.h) and all state dicts but one. Says what.
std::vector<std::string> set_aside(Catalog& a, Catalog& b, bool read_values);

}  // namespace tensordiff
