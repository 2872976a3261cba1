#include "logits/gates.h"

namespace tensordiff {
namespace {

std::optional<double> value_of(std::string_view metric, const LogitsDiff& diff) {
  if (!diff.kl) return std::nullopt;
  if (metric == "kl_mean") return diff.kl->mean;
  if (metric == "kl_p99") return diff.kl_shares[7];
  if (metric == "kl_max") return diff.kl_max;
  if (metric == "delta_p_rms") return diff.delta_p_rms;
  if (metric == "ratio_error") return diff.ratio_error;
  if (metric == "same_top" && diff.same_top) return diff.same_top->mean;
  if (metric == "perplexity_ratio" && diff.perplexity_ratio) return diff.perplexity_ratio->mean;
  return std::nullopt;
}

}  // namespace

bool gates_logits(const ToleranceRule& rule) { return !rule.logits_gates.empty(); }

std::vector<std::string> failed_gates(const ToleranceRule& rule, const LogitsDiff& diff) {
  std::vector<std::string> failed;
  for (const MetricGate& gate : rule.logits_gates)
    if (std::string fault = fault_of(gate, value_of(gate.metric, diff)); !fault.empty())
      failed.push_back(std::move(fault));
  // A position that is no distribution on one side is never within a gate.
  if (diff.unusable > 0)
    failed.push_back(fmt::format("{} positions are not finite on one side", diff.unusable));
  return failed;
}

}  // namespace tensordiff
