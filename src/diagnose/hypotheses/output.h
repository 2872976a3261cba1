// What may be wrong with the output of any step, whatever it computes: dropout that is on, features
// or rows in another order, values of fewer bits.

#pragma once

#include <vector>

#include "diagnose/operators/context.h"

namespace tensordiff::hypotheses {

std::vector<operators::Change> output_changes(const operators::Context& context,
                                              const operators::OperatorPtr& step, double tolerance);

}  // namespace tensordiff::hypotheses
