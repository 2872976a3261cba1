// Layers, calls and steps that the two sides count from different numbers on: a dump of layer 3
// against one that calls it 0, "query_1" and "query_2" against "query_0" and "query_1", one call
// against several.

#pragma once

#include <string>
#include <vector>

#include "match/matcher.h"

namespace tensordiff {

struct Renumbering {
  NamesOf side_b;                  // With the numbers of a, in the order of b's tensors.
  std::vector<std::string> notes;  // Which number is which, and why so.
};

// Where the numbers of the two sides overlap, they are taken as they are. Else layers (or calls)
// whose values agree belong together, and where values cannot tell, those of the same order.
Renumbering renumber(const Catalog& a, const Catalog& b, const MatchOptions& options);

}  // namespace tensordiff
