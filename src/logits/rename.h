// The sequences of two runs under the same names, where their tokens are the same.

#pragma once

#include <string>
#include <vector>

#include "tensor/catalog.h"

namespace tensordiff {

// Sequences of lists of log-probabilities stand in any order: those of B get the name that A has
// for the same ids of tokens. Says in notes what was renamed. Logits that are all there is on both
// sides are paired whatever they are called, in their order.
void name_sequences_alike(Catalog& a, Catalog& b, std::vector<std::string>& notes);

}  // namespace tensordiff
