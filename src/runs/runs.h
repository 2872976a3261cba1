// Many runs of one model on one input: which of them are the same to the bit, where they part
// first, and how far apart they are: the noise floor of each tensor.

#pragma once

#include "compare/noise_file.h"
#include "pipeline.h"

namespace tensordiff {

// One tensor in all runs, as the first has it.
struct RunsTensor {
  std::string name;
  std::vector<std::size_t> classes;  // For each run: which of the distinct results it has.
  std::size_t distinct = 1;
  double rel_l2 = 0;  // The largest distance of a run from the first, over its norm.
  double max_abs = 0;
};

struct RunsComparison {
  std::vector<std::string> paths;
  std::vector<std::size_t> class_of;  // For each run; equal numbers are equal to the bit.
  std::size_t classes = 0;
  std::vector<RunsTensor> tensors;         // In the order of computing.
  std::optional<std::size_t> first_split;  // The first of them that is not the same in all runs.
  std::vector<std::string> missing;        // "run 2: no layers.0.mlp": what some run does not have.
  std::vector<std::string> notes;

  NoiseFloor floor() const;
};

// `request` says how to open, pair and align; its A and B are not looked at.
Result<RunsComparison> compare_runs(const std::vector<std::string>& paths, const Request& request);

}  // namespace tensordiff
