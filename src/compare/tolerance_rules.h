// Tolerances by name: what --tolerance-file holds.
//
//   '\.norm\.':            # found in the name of a; the first that is decides
//     atol: 1e-6           # elements, as --atol and --rtol
//     rtol: 0
//   'mlp':
//     cosine: 0.999        # metrics of the report: at least this for cosine and pcc,
//     max_abs: 0.01        # at most this for errors and counts,
//     norm_ratio: [0.9, 1.1]   # between these for a ratio
//   'logits':
//     kl_mean: 0.01        # metrics of predictions (kLogitsMetrics), of logits and
//     log-probabilities
//
// A rule with metrics and no atol or rtol leaves the decision to the metrics alone.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/pattern.h"
#include "compare/comparison.h"

namespace tensordiff {

// What one metric of a pair has to be.
struct MetricGate {
  std::string metric;
  std::optional<double> least, most;
};

struct ToleranceRule {
  std::string pattern;
  Pattern regex;
  std::optional<double> atol, rtol;
  std::vector<MetricGate> gates;
  std::vector<MetricGate> logits_gates;  // Of kLogitsMetrics; logits/ judges them.
};

class ToleranceRules {
 public:
  // From the text of such a file.
  static Result<ToleranceRules> parse(std::string_view yaml);

  // The first rule for this name; nullptr for none.
  const ToleranceRule* find(std::string_view name) const;

 private:
  std::vector<ToleranceRule> rules_;
};

// The options with the tolerance of the rule in place of their own.
CompareOptions with_rule(CompareOptions options, const ToleranceRule& rule);

// "cosine is 0.98, below 0.999"; "" where the value passes. What is undefined passes no gate.
std::string fault_of(const MetricGate& gate, const std::optional<double>& value);

// Lets the gates of the rule decide. Returns what failed, "cosine is 0.98, below 0.999"; or "".
std::string judge(const ToleranceRule& rule, Comparison& comparison);

}  // namespace tensordiff
