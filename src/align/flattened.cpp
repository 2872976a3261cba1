// Shapes with as many elements and no axes in common, [20, 128] against [8, 320]: the same numbers
// in the same order, cut into rows of another length. The last thing tried, and only where the
// values speak for it: equal sizes alone mean nothing.

#include "align/axes.h"

namespace tensordiff {
namespace {

void flatten(char side, const Shape& shape, Plan& plan) {
  if (shape.size() != 1) plan.push_back({side, Op::flatten, {}});
}

std::vector<Plan> propose(const Shape& a, const Shape& b) {
  if (a == b || element_count(a).value_or(0) == 0 || element_count(a) != element_count(b))
    return {};
  Plan plan;
  flatten('a', a, plan);
  flatten('b', b, plan);
  return {plan};
}

}  // namespace

constinit const Aligner aligners::flattened = {
    .name = "flattened",
    .summary = "the same numbers in the same order, in rows of another length",
    .evidence = Evidence::support,
    .propose = propose,
};

}  // namespace tensordiff
