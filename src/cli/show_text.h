// `tensordiff show` for a person: a table of tensors, or one tensor at length.

#pragma once

#include <string>
#include <vector>

#include "cli/tensor_facts.h"

namespace tensordiff {

struct ShowLook {
  bool color = false;
  std::size_t width = 100;
  bool at_length = false;  // One tensor was asked for by name.
};

std::string show_text(const Catalog& catalog, const std::vector<TensorFacts>& all,
                      const FactsWanted& wanted, const ShowLook& look);

}  // namespace tensordiff
