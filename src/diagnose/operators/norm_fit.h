// The weight, bias and epsilon of a norm, from A's dumps alone.

#pragma once

#include <optional>
#include <span>

#include "diagnose/operators/context.h"
#include "diagnose/operators/norm.h"

namespace tensordiff::operators {

// A straight line through one column of the output over that of the input.
struct Line {
  double slope = 0, start = 0;
  double left = 0, size = 0;  // Squares: what it leaves, and what a constant leaves.
};
// Without `biased` through zero.
Line line_of(const Block& x, const Block& y, uint64_t column, bool biased);

// Whether enough rows are there to tell a weight for each feature.
bool may_be_norm(const Context& context, const Dumped& target);

// Whether a norm of this input may be A's output: each feature of it, over the rows, goes with the
// feature of the output. A quick check before all kinds and epsilons are tried.
bool may_be_input(const Context& context, const Dumped& target, const OperatorPtr& input);

// The norm of this input that leaves least of A; nothing where it leaves much.
std::optional<NormForm> fit_norm(const Context& context, const Dumped& target,
                                 const OperatorPtr& input, std::span<const double> epsilons);

}  // namespace tensordiff::operators
