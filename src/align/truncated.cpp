// One side is the beginning or the end of the other: [20, 128] against [24, 128], which has four
// rows more, after what it shares (a longer sequence) or before it (padding on the left).
// What is left out is not compared, so that only equal values may speak for it.

#include <algorithm>

#include "align/axes.h"

namespace tensordiff {
namespace {

bool fits_inside(const Shape& small, const Shape& large) {
  return std::ranges::equal(small, large, std::ranges::less_equal());
}

std::vector<Plan> plans_of(const Shape& a, const Shape& b, const Shape& shape_a,
                           const Plan& before) {
  const Shape shape_b = without_units(b);
  if (element_count(a).value_or(0) == 0 || element_count(b).value_or(0) == 0) return {};
  const bool a_is_small = fits_inside(shape_a, shape_b);
  if (shape_a == shape_b || !(a_is_small || fits_inside(shape_b, shape_a))) return {};
  const Shape& small = a_is_small ? shape_a : shape_b;
  const Shape& large = a_is_small ? shape_b : shape_a;

  Plan plan = drop_units('a', a);
  for (const Plan& more : {drop_units('b', b), before})
    plan.insert(plan.end(), more.begin(), more.end());
  for (std::size_t axis = 0; axis < small.size(); ++axis)
    if (small[axis] < large[axis])
      plan.push_back({a_is_small ? 'b' : 'a', Op::truncate, {axis, small[axis]}});
  Plan from_end = plan;
  for (Step& step : from_end)
    if (step.op == Op::truncate) {
      const uint64_t axis = step.argument[0];
      step = {step.side, Op::select, {axis, large[axis] - small[axis], small[axis]}};
    }
  return {plan, from_end};
}

std::vector<Plan> propose(const Shape& a, const Shape& b) {
  const Shape shape = without_units(a);
  std::vector<Plan> plans = plans_of(a, b, shape, {});
  // A kernel with the tokens along its other axis, where it does not fit as it is.
  if (plans.empty() && shape.size() == 2)
    plans = plans_of(a, b, {shape[1], shape[0]}, {{'a', Op::permute, {1, 0}}});
  return plans;
}

}  // namespace

constinit const Aligner aligners::truncated = {
    .name = "truncated",
    .summary = "one side is, value for value, the beginning or the end of the other",
    .evidence = Evidence::exact,
    .propose = propose,
};

}  // namespace tensordiff
