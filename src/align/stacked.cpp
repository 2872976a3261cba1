// One side has stacked what several ranks hold along a first axis that the other does not have:
// [8, 64, 76, 64] against [1, 64, 76, 64]. The first of them is compared, and the report says so.
// Where the other side has no axis in its place, only where many axes agree: a matrix is no stack
// of vectors.

#include "align/axes.h"

namespace tensordiff {
namespace {

constexpr std::size_t kAxesMin = 3;

void add_plan(char side, const Shape& stack, const Shape& single, std::vector<Plan>& plans) {
  if (stack.size() < 2 || stack[0] < 2 || single.empty()) return;
  const Shape rest = without_units(Shape(stack.begin() + 1, stack.end()));
  const bool in_its_place = single.size() == stack.size() && single[0] == 1;
  if (rest != without_units(single) || !(in_its_place || rest.size() >= kAxesMin)) return;
  const char other = side == 'a' ? 'b' : 'a';
  Plan plan = {{side, Op::select, {0, 0, 1}}};
  Shape selected = stack;
  selected[0] = 1;
  for (Step& step : drop_units(side, selected)) plan.push_back(std::move(step));
  for (Step& step : drop_units(other, single)) plan.push_back(std::move(step));
  plans.push_back(std::move(plan));
}

std::vector<Plan> propose(const Shape& a, const Shape& b) {
  std::vector<Plan> plans;
  if (element_count(a).value_or(0) == 0 || element_count(b).value_or(0) == 0) return plans;
  add_plan('a', a, b, plans);
  add_plan('b', b, a, plans);
  return plans;
}

}  // namespace

constinit const Aligner aligners::stacked = {
    .name = "stacked",
    .summary = "one side has a first axis of ranks, of which the first is compared",
    .evidence = Evidence::values,
    .propose = propose,
};

}  // namespace tensordiff
