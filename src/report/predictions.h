// What the predictions of two runs add to a report, where logits or log-probabilities are all there
// is.

#pragma once

#include "compare/tolerance_rules.h"
#include "report/report.h"

namespace tensordiff {

// Measures both runs and lets that decide on the rows: values of single tokens have no tolerance of
// their own, and equal logits up to rounding may still choose other tokens.
void judge_predictions(const Catalog& a, const Catalog& b, const Matching& matching,
                       const ToleranceRules* rules, Report& report);

// Whether what only one side has was not recorded by the other: dumps, and predictions.
bool hold_parts(const Catalog& a, const Catalog& b);

}  // namespace tensordiff
