// Makes pairs of names into pairs of tensors.

#pragma once

#include "match/matcher.h"

namespace tensordiff {

// Those whose tensors are free on both sides; notes say which are not. "c_attn[q]" is a part of
// c_attn; its parts lie in the order of their names (q, k, v; gate, up; 0, 1, 2), others in the
// order in which they are given. A tensor may have two partners, as a tied embedding has.
Proposal pairs_by_name(const MatchInput& input, const std::vector<NamePair>& wanted);

}  // namespace tensordiff
