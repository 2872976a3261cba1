// How large the heads of a run are, for tensors that have no axis of them.

#pragma once

#include <vector>

#include "diagnose/site.h"

namespace tensordiff {

// Sizes of a head that the configuration gives, or that other tensors of the layer show; the
// surest first.
std::vector<uint64_t> known_head_dims(const Run& run, const Site& site);

// Numbers of ranks that the tensors of a side were put together from; 1 where there are none.
uint64_t ranks_of(const Run& run, char side);

// Whether a step adds up what the ranks of a tensor parallel run hold.
bool reduces_over_ranks(Role role);

// Sizes of heads that most models have before all others: a search ends at one that fits.
void usual_first(std::vector<uint64_t>& dims);

// The first features of each token, whole heads where the view has an axis of them.
View first_features(const View& view, const Extent& extent, uint64_t features);

}  // namespace tensordiff
