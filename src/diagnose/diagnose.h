// From all comparisons to opinions: what is noise, where the two part first, and why.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "diagnose/finding.h"
#include "diagnose/replay/by_weights.h"
#include "diagnose/site.h"

namespace tensordiff {

struct DiagnoseOptions {
  bool enabled = true;
  bool explain = false;            // Also say what was tried.
  std::vector<std::string> order;  // Names of a in the order in which they were computed.
  ModelConfig facts = {};          // What the configuration of the model says.
  Weights weights = {};            // To compute projections again with.
};

struct Outcome {
  std::size_t pair = 0;
  Verdict verdict = Verdict::match;
  std::string note = {};  // What the reader should know of it, where it is no bug.
};

struct Insight {
  bool judged = false;  // Verdicts come from the noise model; else the tolerance stands.
  std::vector<Outcome> outcomes;
  std::optional<Divergence> first;
  std::vector<Divergence> next;  // Errors made after it, in execution order.
  std::vector<Finding> findings;
  std::vector<Trial> trials;
  std::optional<WeightUse>
      weight_use;  // Where weights were given, and there is what to use them on.
};

Insight diagnose(std::vector<Site> sites, const DiagnoseOptions& options);

}  // namespace tensordiff
