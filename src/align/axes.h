// What aligners share: shapes without their axes of size 1, and the pairing of axes from left to
// right where one side has merged what the other keeps apart.

#pragma once

#include "align/aligner.h"

namespace tensordiff {

// The axes that hold more than one entry.
Shape without_units(const Shape& shape);

// Drops those axes of one side. From the last to the first, so that every step names the axis by
// its number in the tensor as it was stored.
Plan drop_axes(char side, const std::vector<std::size_t>& ascending);
Plan drop_units(char side, const Shape& shape);

// Walks along the axes of a target shape while the axes of another one are taken, one by one, in
// some order. Axes meet in groups of equal product, of which one side or the other has just one
// axis: [20, 128] meets [20, 8, 16], but not [8, 320], where both sides would have to be cut. All
// axes have sizes above 1.
class AxisWalk {
 public:
  explicit AxisWalk(const Shape& target) : target_(&target) {}

  // False where an axis of this size does not fit next.
  bool take(uint64_t size);
  // Whether the axis of the target that was met last is not filled yet.
  bool inside_group() const { return left_ > 1; }
  bool done() const { return next_ == target_->size() && !inside_group(); }

  // The splits that give both sides the finer shape of each group.
  Plan splits(char taken_side, char target_side) const;

 private:
  struct Group {
    std::size_t taken, target;  // Their first axes.
    bool splits_target;         // Else it is the taken axis that is split.
    Shape sizes;
  };

  const Shape* target_;
  std::vector<Group> groups_;
  std::size_t taken_ = 0;
  std::size_t next_ = 0;
  uint64_t left_ = 1;  // What is not filled yet of the target axis before next_.
};

}  // namespace tensordiff
