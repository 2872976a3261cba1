// Dropout that is on: some values are zero, and all others larger by one factor.

#pragma once

#include <optional>

#include "diagnose/operators/context.h"
#include "diagnose/operators/operator.h"

namespace tensordiff::operators {

// The change from an operator to the same behind dropout, as far as B's output shows it: nothing
// where B has no zeros of its own, or the rest is not one factor.
std::optional<Change> dropped(const Context& context, const OperatorPtr& of);

}  // namespace tensordiff::operators
