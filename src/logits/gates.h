// What a tolerance file asks of predictions.

#pragma once

#include "compare/tolerance_rules.h"
#include "logits/measure.h"

namespace tensordiff {

bool gates_logits(const ToleranceRule& rule);

// "kl_mean is 0.02, above 0.01" for each gate of the rule that fails.
std::vector<std::string> failed_gates(const ToleranceRule& rule, const LogitsDiff& diff);

}  // namespace tensordiff
