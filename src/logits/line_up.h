// Which sequence of one run is which of another, and which of their positions are the same.

#pragma once

#include "diagnose/finding.h"
#include "logits/measure.h"

namespace tensordiff {

struct LinedUp {
  std::vector<SequencePair> pairs;  // Of as many positions, and of as many words.
  std::vector<std::string> notes;
  std::vector<Finding> findings;  // Words that are not where the other side has them.
};

// By the ids of tokens where both sides tell them, else in order. What only one side has is noted.
Result<LinedUp> line_up(std::vector<TokenSequence> a, std::vector<TokenSequence> b);

}  // namespace tensordiff
