// Partners that the numbering of all other pairs predicts.
//
// Where "layer2.0.conv1" is "conv3_block1_1_conv" for all blocks but one, whose values a mistake
// has changed, the last two belong together as well. And a tensor of B that holds what another
// layer should hold, once more, is not the partner of what it is a copy of.

#pragma once

#include "match/matcher.h"

namespace tensordiff {

// Runs after pairs were made by value.
void pair_by_prediction(MatchInput& input, Matching& matching);

// The last tensor of a shape on both sides, where nearly all others have a partner.
void pair_last(MatchInput& input, Matching& matching);

}  // namespace tensordiff
