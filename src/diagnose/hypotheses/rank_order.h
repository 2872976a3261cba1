// Ranks that hold the pieces of others, where neighbours should hold the same.
//
// Four ranks with two heads of keys hold heads 0, 0, 1, 1; a port that deals heads out like cards
// gives them 0, 1, 0, 1. No order of blocks tells that, because only one of each pair of ranks
// is compared with the other side.

#pragma once

#include "diagnose/hypotheses/diagnosis.h"

namespace tensordiff {

std::optional<Explanation> ranks_in_another_order(const Case& it);

}  // namespace tensordiff
