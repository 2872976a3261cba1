// Tokens as an axis with an identity: which row of one dump is which row of the other.

#pragma once

#include <string>
#include <vector>

#include "tensor/catalog.h"

namespace tensordiff {

// Gives both dumps the tokens that both have, in one order, where their tokens differ: a packed
// batch against a padded one, passes that only one side has, a warm-up. Tokens are the same where
// their ids are, or else the rows of the embedding; sequences are told apart by what repeats in the
// order of both. Dumps of the same tokens stay as they are. Says what was left out.
void line_up_tokens(Catalog& a, Catalog& b, std::vector<std::string>& notes);

// A token, and the pass that computed it.
struct RunToken {
  int32_t sequence = 0, position = 0;
  int32_t pass = 0;
  bool placed = true;  // Sequence and position are known, and not only the pass.
};

// What is known of the tokens that both have, in the order in which they are compared: from the
// side that tells them, from the shapes of its tensors, and the passes of the side that has
// several. Empty where neither is known to have tokens.
std::vector<RunToken> common_tokens(const Catalog& a, const Catalog& b);

// What the ranks of both sides hold of one pair.
struct TokenViews {
  std::vector<View> a, b;
};

// Keeps the rows whose tokens both have, where one holds less than all `count` tokens of the run
// (Tensor::tokens); leaves the views as they are where the axes do not tell.
void keep_common_tokens(const Tensor& a, const Tensor& b, uint64_t count, TokenViews& views);

}  // namespace tensordiff
