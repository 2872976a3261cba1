// Pairs that names made and values contradict.

#pragma once

#include "match/matcher.h"

namespace tensordiff {

// What one convention calls the norm before the MLP is another's norm of the block's output. Where
// names were paired by what they mean, and in most layers both of a pair are instead what tensors
// without a partner hold, the partners change. In most layers: in one it may be a mistake.
// `free_a` and `free_b` of the input lose what finds a partner; a note says so.
void uncross(MatchInput& input, Matching& matching);

}  // namespace tensordiff
