// Pairs that values made against the map of names that all other pairs show.
//
// A converter renames modules, not single numbers: what belongs to one module of A belongs to one
// module of B, what lies in one layer lies in one layer, and a parameter of one kind is called
// alike everywhere. Where values say that "block.0.conv.bias" is "layer.0.norm.bias", while
// "block.0.conv.weight" is "layer.0.conv.weight" and other blocks keep them apart as well, two
// biases were exchanged, and to pair them so would hide it. Such pairs are paired as the other
// names say, and a note tells it. The other way round, a pair that names made against that map
// gives way where tensors without a partner hold its values.

#pragma once

#include "match/matcher.h"

namespace tensordiff {

void pair_by_name_map(MatchInput& input, Matching& matching);

}  // namespace tensordiff
