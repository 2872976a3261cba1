// The same axes in another order, also where one side merges some of them: [1, 8, 76, 64] against
// [76, 8, 64], [8, 20, 16] against [20, 128].
//
// All orders of the axes of one side are walked along the axes of the other, as far as the sizes
// fit, first for b, then for a; those that move the fewest axes past each other come first. Two
// things are not done, because they undo mistakes rather than layout:
//   - the last axis of the finer side, the features, is never moved inside a merged axis: [heads,
//     features] read as [features, heads] is a scrambled tensor,
//   - where the shapes agree but for axes of size 1, the last axis stays the last: a square matrix
//     is not transposed.

#include <algorithm>

#include "align/axes.h"

namespace tensordiff {
namespace {

// The sizes allow more orders than anybody can mean once there are many equal ones; these bounds
// keep what is looked at to what is simple.
constexpr std::size_t kOrdersMax = 128;
constexpr std::size_t kVisitsMax = 20'000;

struct Order {
  std::vector<uint64_t> axes;
  AxisWalk walk;

  // Pairs of axes that change places: 0 for the order as it is.
  std::size_t inversions() const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < axes.size(); ++i)
      for (std::size_t j = i + 1; j < axes.size(); ++j) count += axes[i] > axes[j];
    return count;
  }
};

class OrderSearch {
 public:
  OrderSearch(const Shape& moved, const Shape& target)
      : moved_(moved), same_shape_(moved == target), used_(moved.size()) {
    extend({{}, AxisWalk(target)});
  }

  std::vector<Order> found;  // Without the order that the axes have already.

 private:
  // Depth is the number of axes above size 1, of which 2^40 elements have at most 40.
  void extend(const Order& order) {
    if (order.axes.size() == moved_.size()) {
      if (order.walk.done() && order.inversions() > 0) found.push_back(order);
      return;
    }
    for (uint64_t axis = 0; axis < moved_.size(); ++axis) {
      if (used_[axis]) continue;
      if (++visits_ > kVisitsMax || found.size() == kOrdersMax) return;
      Order longer = order;
      longer.axes.push_back(axis);
      if (!longer.walk.take(moved_[axis]) || !keeps_features(longer)) continue;
      used_[axis] = true;
      extend(longer);
      used_[axis] = false;
    }
  }

  bool keeps_features(const Order& order) const {
    if (order.axes.back() + 1 != moved_.size()) return true;
    if (same_shape_ && order.axes.size() < moved_.size()) return false;
    return !order.walk.inside_group();
  }

  const Shape& moved_;
  bool same_shape_;
  std::vector<bool> used_;
  std::size_t visits_ = 0;
};

struct Move {
  std::size_t inversions;
  Plan plan;
};

void add_moves(char side, const Shape& moved, const Shape& target, std::vector<Move>& moves) {
  const char other = side == 'a' ? 'b' : 'a';
  for (const Order& order : OrderSearch(moved, target).found) {
    Plan plan = {{side, Op::permute, order.axes}};
    for (Step& step : order.walk.splits(side, other)) plan.push_back(std::move(step));
    moves.push_back({order.inversions(), std::move(plan)});
  }
}

std::vector<Plan> propose(const Shape& a, const Shape& b) {
  if (a == b || element_count(a).value_or(0) == 0 || element_count(a) != element_count(b))
    return {};
  const Shape shape_a = without_units(a);
  const Shape shape_b = without_units(b);
  std::vector<Move> moves;
  add_moves('b', shape_b, shape_a, moves);
  add_moves('a', shape_a, shape_b, moves);
  std::ranges::stable_sort(moves, {}, &Move::inversions);

  Plan drops = drop_units('a', a);
  for (Step& step : drop_units('b', b)) drops.push_back(std::move(step));
  std::vector<Plan> plans;
  for (const Move& move : moves) {
    plans.push_back(drops);
    plans.back().insert(plans.back().end(), move.plan.begin(), move.plan.end());
  }
  return plans;
}

}  // namespace

constinit const Aligner aligners::permuted = {
    .name = "permuted",
    .summary = "the same axes in another order, chosen by the values",
    .evidence = Evidence::values,
    .propose = propose,
};

}  // namespace tensordiff
