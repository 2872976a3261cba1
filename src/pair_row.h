// One pair, from two tensors to a row of the report.

#pragma once

#include "compare/tolerance_rules.h"
#include "request.h"

namespace tensordiff {

// What the user's file of tolerances says about this pair; may be nothing.
const ToleranceRule* rule_for(const PairRow& row, const Request& request);

// Fills one row. A bad tensor spoils this row and nothing else.
void compare_pair(const Sides& sides, const Pair& which, const Request& request, PairRow& row);

}  // namespace tensordiff
