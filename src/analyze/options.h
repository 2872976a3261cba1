// Which analyses are asked for, and what they are told. A header of its own, for whoever only
// passes it on.

#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tensordiff {

struct Analysis;

struct AnalyzeOptions {
  std::vector<const Analysis*> wanted;
  std::string device;    // Of the speed estimates; empty: the default of analyze/device.h.
  std::string baseline;  // An earlier `-o report`, as text, for regression_test; empty: none.
  std::vector<std::string> bases;  // Models that b may have been merged from, for what_changed.
  std::string activations;         // A dump of the inputs of layers, for quantization_analysis.
  // What the weights of b may take: bytes, or a share of what they take now (0.05: 5 % more).
  std::optional<double> size_budget, size_growth;
  std::vector<std::pair<std::string, double>> thresholds;  // "rel_l2", 0.01
};

}  // namespace tensordiff
