// The metrics of a pair by name: the one table behind --threshold, --tolerance-file and the docs.

#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "compare/comparison.h"

namespace tensordiff {

struct Metric {
  std::string_view name;  // As in the report.
  // Which side of a bound is good. A ratio is good near 1 and needs a bound on each side.
  enum class Good { high, low, near_one } good;
  std::optional<double> (*of)(const Diff& diff);
};

std::span<const Metric> metrics();
const Metric* metric_named(std::string_view name);  // nullptr for none.

}  // namespace tensordiff
