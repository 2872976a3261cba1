// What `show` tells of one tensor, gathered from its elements.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/elements.h"
#include "compare/comparison.h"
#include "tensor/catalog.h"

namespace tensordiff {

struct FactsWanted {
  bool stats = false;
  uint64_t values = 0;  // At most so many; none of an empty request.
  std::string slice;    // Where values are taken and looked for; empty: everywhere.
  std::optional<Condition> find;
};

// Elements as a Reader gives them, side by side.
struct TensorFacts {
  const Tensor* tensor = nullptr;
  std::string fault;  // Why something that was wanted could not be had.
  std::optional<Stats> stats;

  Box box;                        // What the slice stands for.
  std::vector<std::byte> values;  // The first of the box.

  uint64_t found = 0;                     // How many elements meet the condition.
  std::vector<uint64_t> found_positions;  // The first of them, in row-major order of the tensor.
  std::vector<std::byte> found_values;
};

TensorFacts gather_facts(const Tensor& tensor, const FactsWanted& wanted);

}  // namespace tensordiff
