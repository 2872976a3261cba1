// Tensors that hold several of the other side, and what their names say of it.

#pragma once

#include <string>
#include <vector>

#include "tensor/catalog.h"

namespace tensordiff {

// A tensor and those that it holds, in their order.
struct Fusion {
  std::size_t whole = 0;
  std::vector<std::size_t> parts;
};

// One side, as far as it is free.
struct FreeSide {
  const Catalog& catalog;
  const std::vector<std::string>& names;
  const std::vector<std::size_t>& free;
};

// A converter fuses all layers alike. What was found in some is read as a rule for the others, and
// one that holds a tensor of another layer is held to the rule: to pair by value would hide a
// mistake.
void follow_rules(const FreeSide& wholes, const FreeSide& separate, std::vector<Fusion>& fusions);

// Gives the parts of all fusions of a kind one order.
void put_in_order(const FreeSide& wholes, const FreeSide& separate, std::vector<Fusion>& fusions,
                  std::vector<std::string>& notes);

}  // namespace tensordiff
