// The kinds of operators that a step is tried as.

#pragma once

#include <string_view>

#include "diagnose/operators/context.h"
#include "diagnose/operators/operator.h"

namespace tensordiff::operators {

struct Proposal {
  std::string_view kind;
  std::string_view needs;  // What must be in the dumps, for the advice what to dump next.
  // The operator of this kind that A computes; null where it is none.
  OperatorPtr (*propose)(const Context& context);
};

namespace kinds {

extern const Proposal norm;
extern const Proposal batch_norm;
extern const Proposal elementwise;
extern const Proposal sum;
extern const Proposal embedding;
extern const Proposal linear;
extern const Proposal attention;
extern const Proposal rotary;
extern const Proposal convolution;
extern const Proposal pooling;
extern const Proposal affine;

// Tried in this order, the cheapest first; the first that is what A computes is taken.
inline constexpr const Proposal* kAll[] = {&norm,      &batch_norm, &elementwise, &sum,
                                           &embedding, &linear,     &attention,   &convolution,
                                           &pooling,   &rotary,     &affine};

}  // namespace kinds

}  // namespace tensordiff::operators
