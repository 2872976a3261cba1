// Why two runs predict other tokens, where one simple change explains nearly all of it.

#pragma once

#include "diagnose/finding.h"
#include "logits/measure.h"

namespace tensordiff {

// The best explanation, if one is good enough; its `pair` is the number of the sequence. A constant
// for each position that softmax does not see is told as a convention.
std::vector<Finding> causes_of(const std::vector<SequencePair>& pairs, const LogitsDiff& diff);

}  // namespace tensordiff
