// Shapes that agree once axes of size 1 are dropped: [1, 20, 128] against [20, 128], [] against
// [1]. Only as many are dropped as it takes: [1, 20, 1, 16] and [20, 1, 16] keep the one they
// share.

#include <algorithm>

#include "align/axes.h"

namespace tensordiff {
namespace {

// How many axes of size 1 stand before each other axis, and after the last.
std::vector<std::size_t> unit_runs(const Shape& shape) {
  std::vector<std::size_t> runs(1);
  for (const uint64_t size : shape) {
    if (size == 1) {
      ++runs.back();
    } else {
      runs.push_back(0);
    }
  }
  return runs;
}

// The first axes of each run that are more than the other side has there.
Plan drop_surplus(char side, const Shape& shape, const std::vector<std::size_t>& kept) {
  std::vector<std::size_t> surplus = unit_runs(shape);
  for (std::size_t run = 0; run < surplus.size(); ++run)
    surplus[run] -= std::min(surplus[run], kept[run]);
  std::vector<std::size_t> dropped;
  std::size_t run = 0;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] != 1) {
      ++run;
    } else if (surplus[run] > 0) {
      --surplus[run];
      dropped.push_back(axis);
    }
  }
  return drop_axes(side, dropped);
}

std::vector<Plan> propose(const Shape& a, const Shape& b) {
  if (a == b || without_units(a) != without_units(b)) return {};
  Plan plan = drop_surplus('a', a, unit_runs(b));
  for (Step& step : drop_surplus('b', b, unit_runs(a))) plan.push_back(std::move(step));
  return {plan};
}

}  // namespace

constinit const Aligner aligners::unit_axes = {
    .name = "unit-axes",
    .summary = "the shapes agree but for axes of size 1",
    .evidence = Evidence::none,
    .propose = propose,
};

}  // namespace tensordiff
