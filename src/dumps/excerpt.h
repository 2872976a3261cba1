// Dumps that show a part of each tensor only: llama.cpp's printed logs, statistics of msprobe.

#pragma once

#include <string>
#include <vector>

#include "dumps/tokens.h"
#include "tensor/catalog.h"

namespace tensordiff {

// Leaves in both dumps what both show of each step, where one of them is a printed log: the first
// and the last entries of each axis. The other side is looked at in the shape that the log tells.
// Where one of them has statistics in place of tensors, the other gets the same statistics. Says
// so in a note. Dumps that hold all of their tensors stay as they are.
void keep_what_is_shown(Catalog& a, Catalog& b, std::vector<std::string>& notes);

// The tokens that both dumps have, and what both show of them.
inline void keep_common(Catalog& a, Catalog& b, std::vector<std::string>& notes) {
  line_up_tokens(a, b, notes);
  keep_what_is_shown(a, b, notes);
}

}  // namespace tensordiff
