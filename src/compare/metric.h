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

// Metrics of what two runs predict, which logits/ measures: gates of a tolerance file too.
struct LogitsMetric {
  std::string_view name;
  Metric::Good good;
};
inline constexpr LogitsMetric kLogitsMetrics[] = {
    {"kl_mean", Metric::Good::low},     {"kl_p99", Metric::Good::low},
    {"kl_max", Metric::Good::low},      {"same_top", Metric::Good::high},
    {"delta_p_rms", Metric::Good::low}, {"perplexity_ratio", Metric::Good::near_one},
    {"ratio_error", Metric::Good::low},
};

std::span<const Metric> metrics();
const Metric* metric_named(std::string_view name);  // nullptr for none.

}  // namespace tensordiff
