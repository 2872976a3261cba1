// The stages of a pipeline parallel run, found in the names of its tensors.

#pragma once

#include <string>
#include <vector>

#include "tensor/catalog.h"

namespace tensordiff {

// Drops the stage from names ("pp_rank_1/layers.0.w", "pp_1/…"), and where each stage counts its
// layers from 0, gives them the numbers that they have in the whole model. A catalog whose names
// speak of fewer than two stages stays as it is. Returns what was done, as notes.
std::vector<std::string> join_stages(Catalog& catalog, char side);

}  // namespace tensordiff
