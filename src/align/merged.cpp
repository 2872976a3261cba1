// Shapes of which one merges axes that the other keeps apart, in the same order: [20, 128] against
// [20, 8, 16], [2, 20, 128] against [40, 8, 16]. The merged axes are split, so that both sides get
// the finer shape; no element moves.

#include <algorithm>

#include "align/axes.h"

namespace tensordiff {
namespace {

std::vector<Plan> propose(const Shape& a, const Shape& b) {
  const Shape from = without_units(a);
  const Shape to = without_units(b);
  if (from == to || element_count(a).value_or(0) == 0 || element_count(a) != element_count(b))
    return {};
  AxisWalk walk(to);
  if (!std::ranges::all_of(from, [&](uint64_t size) { return walk.take(size); })) return {};

  Plan plan = drop_units('a', a);
  for (Step& step : drop_units('b', b)) plan.push_back(std::move(step));
  for (Step& step : walk.splits('a', 'b')) plan.push_back(std::move(step));
  return {plan};
}

}  // namespace

constinit const Aligner aligners::merged = {
    .name = "merged",
    .summary = "one side merges axes that the other keeps apart",
    .evidence = Evidence::none,
    .propose = propose,
};

}  // namespace tensordiff
