#include "align/axes.h"

namespace tensordiff {

Shape without_units(const Shape& shape) {
  Shape result = shape;
  std::erase(result, 1);
  return result;
}

Plan drop_axes(char side, const std::vector<std::size_t>& ascending) {
  Plan plan;
  for (std::size_t i = ascending.size(); i-- > 0;)
    plan.push_back({side, Op::squeeze, {ascending[i]}});
  return plan;
}

Plan drop_units(char side, const Shape& shape) {
  std::vector<std::size_t> units;
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    if (shape[axis] == 1) units.push_back(axis);
  return drop_axes(side, units);
}

bool AxisWalk::take(uint64_t size) {
  const std::size_t axis = taken_++;
  if (inside_group()) {
    if (left_ % size != 0) return false;
    left_ /= size;
    groups_.back().sizes.push_back(size);
    return true;
  }
  if (next_ == target_->size()) return false;
  const uint64_t first = (*target_)[next_];
  if (first % size == 0) {
    groups_.push_back({axis, next_++, true, {size}});
    left_ = first / size;
    return true;
  }
  Group group{axis, next_, false, {}};
  uint64_t left = size;
  while (left > 1) {
    if (next_ == target_->size() || left % (*target_)[next_] != 0) return false;
    left /= (*target_)[next_];
    group.sizes.push_back((*target_)[next_++]);
  }
  groups_.push_back(std::move(group));
  return true;
}

Plan AxisWalk::splits(char taken_side, char target_side) const {
  Plan plan;
  for (std::size_t i = groups_.size(); i-- > 0;) {  // From the last: the axes before keep theirs.
    const Group& group = groups_[i];
    if (group.sizes.size() == 1) continue;
    std::vector<uint64_t> argument = {group.splits_target ? group.target : group.taken};
    argument.insert(argument.end(), group.sizes.begin(), group.sizes.end());
    plan.push_back({group.splits_target ? target_side : taken_side, Op::split, argument});
  }
  return plan;
}

}  // namespace tensordiff
