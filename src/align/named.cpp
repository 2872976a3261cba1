// Aligns by names of axes. The sizes of merged axes come from where they stand alone, on either
// side; of those that one axis merges, one may be left to follow from the others.

#include <algorithm>
#include <map>

#include "align/dims.h"
#include "align/view.h"
#include "align/whole.h"
#include "base/side.h"
#include "base/text.h"

namespace tensordiff {
namespace {

using Sizes = std::map<std::string, uint64_t>;

// One side on its way: what its axes are called, and what it looks like.
struct Named {
  char side = 'a';
  const NamedAxes& axes;
  View view;  // Its ranks put together.
  Plan steps = {};
  std::vector<Copy> copies = {};
};

std::string name_of_axis(const std::vector<NamedAxis>& axis) {
  std::string text;
  for (const NamedAxis& each : axis) text += (text.empty() ? "" : " ") + each.name;
  return axis.size() > 1 ? "(" + text + ")" : text;
}

Result<void> learn(Sizes& sizes, const std::string& name, uint64_t size, char side) {
  if (name == "1") {
    if (size != 1) return Error("{} has size {} where the axes say 1", capital(side), size);
    return {};
  }
  const auto [at, added] = sizes.emplace(name, size);
  if (added || at->second == size) return {};
  return Error("axis {} has {} entries, but {} of {}", name, at->second, size, capital(side));
}

// What follows from one axis for those that it merges. Says whether anything new did.
Result<bool> solve_axis(const Named& named, std::size_t index, Sizes& sizes) {
  const std::vector<NamedAxis>& axis = named.axes[index];
  uint64_t left = named.view.shape[index];
  if (axis.size() == 1) {
    const bool known = sizes.contains(axis[0].name) || axis[0].name == "1";
    TRY(learn(sizes, axis[0].name, left, named.side));
    return !known;
  }
  const NamedAxis* unknown = nullptr;
  std::size_t unknowns = 0;
  for (const NamedAxis& each : axis) {
    const auto known = sizes.find(each.name);
    if (each.name == "1") continue;
    if (known == sizes.end()) {
      unknown = &each, ++unknowns;
      continue;
    }
    if (known->second == 0 || left % known->second != 0)
      return Error("axis {} of {} has {} entries, which {} = {} does not divide",
                   name_of_axis(axis), capital(named.side), named.view.shape[index], each.name,
                   known->second);
    left /= known->second;
  }
  if (unknowns > 1) return false;
  if (unknowns == 1) {
    TRY(learn(sizes, unknown->name, left, named.side));
    return true;
  }
  if (left != 1)
    return Error("axis {} of {} has {} entries, {} times as many as its parts", name_of_axis(axis),
                 capital(named.side), named.view.shape[index], left);
  return false;
}

Result<Sizes> solve(const Named& a, const Named& b) {
  Sizes sizes;
  for (bool found = true; found;) {
    found = false;
    for (const Named* named : {&a, &b})
      for (std::size_t i = 0; i < named->axes.size(); ++i)
        found |= TRY(solve_axis(*named, i, sizes));
  }
  for (const Named* named : {&a, &b})
    for (const std::vector<NamedAxis>& axis : named->axes)
      for (const NamedAxis& each : axis)
        if (each.name != "1" && !sizes.contains(each.name))
          return Error("the size of axis {} does not follow from the shapes", each.name);
  return sizes;
}

void take(Named& named, Step step) {
  named.view = apply(step, std::move(named.view));
  named.steps.push_back(std::move(step));
}

// Splits merged axes, and gives the names of all that there are then.
std::vector<std::string> split_axes(Named& named, const Sizes& sizes) {
  std::vector<std::string> names;
  for (const std::vector<NamedAxis>& axis : named.axes) {
    Step step{named.side, Op::split, {names.size()}};
    for (const NamedAxis& each : axis) {
      step.argument.push_back(each.name == "1" ? 1 : sizes.at(each.name));
      names.push_back(each.name);
    }
    if (axis.size() > 1) take(named, std::move(step));
  }
  return names;
}

// Drops the axes that the other side does not have, which have size 1.
Result<void> drop_axes(Named& named, std::vector<std::string>& names, const NamedAxes& other) {
  std::vector<std::string> shared;
  for (const std::vector<NamedAxis>& axis : other)
    for (const NamedAxis& each : axis) shared.push_back(each.name);
  for (std::size_t i = names.size(); i-- > 0;) {
    if (names[i] != "1" && std::ranges::find(shared, names[i]) != shared.end()) continue;
    if (named.view.shape[i] != 1)
      return Error("axis {} of {} has {} entries, and {} has no such axis", names[i],
                   capital(named.side), named.view.shape[i], named.side == 'a' ? 'B' : 'A');
    take(named, {named.side, Op::squeeze, {i}});
    names.erase(names.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return {};
}

// The ranks as the user said they fit together: along the axis with [tp], or all the same.
Result<Named> gathered(char side, const Operand& operand, const NamedAxes& axes) {
  const std::vector<View>& shards = operand.shards;
  for (const View& shard : shards)
    if (shard.shape.size() != axes.size())
      return Error("{} has {} axes, {}, but {} are named", capital(side), shard.shape.size(),
                   shape_text(shard.shape), axes.size());
  Named named{side, axes, shards[0]};
  if (shards.size() == 1) return named;
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    const auto sharded = std::ranges::find_if(axes[axis], &NamedAxis::sharded);
    if (sharded == axes[axis].end()) continue;
    // Pieces of an axis that is merged into another follow each other only where it is the slowest.
    if (sharded != axes[axis].begin())
      return Error("[tp] is on {}, which is not the first of {}", sharded->name,
                   name_of_axis(axes[axis]));
    if (!fit_along(shards, axis))
      return Error("the ranks of {} do not fit together along {}", capital(side), sharded->name);
    named.view = concatenated(shards, axis);
    named.steps = {{side, Op::concat, {axis, shards.size(), 1}}};
    return named;
  }
  for (std::size_t rank = 1; rank < shards.size(); ++rank) {
    if (shards[rank].shape != shards[0].shape)
      return Error("the ranks of {} have other shapes, and no axis has [tp]", capital(side));
    named.copies.push_back({side, rank, 0, shards[rank], shards[0]});
  }
  named.steps = {{side, Op::replica, {shards.size()}}};
  return named;
}

// The axes of b in the order of a.
void reorder(Named& b, const std::vector<std::string>& from, const std::vector<std::string>& to) {
  Step step{'b', Op::permute, {}};
  for (const std::string& name : to)
    step.argument.push_back(static_cast<uint64_t>(std::ranges::find(from, name) - from.begin()));
  if (!std::ranges::is_sorted(step.argument)) take(b, std::move(step));
}

}  // namespace

Result<AlignedPair> align_named(const Operand& a, const Operand& b, const Dims& dims) {
  if (a.section || b.section) return Error("a part of a fused tensor cannot be given by --dims");
  Named left = TRY(gathered('a', a, dims.a));
  Named right = TRY(gathered('b', b, dims.b));
  if (left.view.elements() == 0 || right.view.elements() == 0)
    return Error("{} has no elements", left.view.elements() == 0 ? 'a' : 'b');
  const Sizes sizes = TRY(solve(left, right));
  std::vector<std::string> names_a = split_axes(left, sizes);
  std::vector<std::string> names_b = split_axes(right, sizes);
  TRY(drop_axes(left, names_a, dims.b));
  TRY(drop_axes(right, names_b, dims.a));
  reorder(right, names_b, names_a);

  AlignedPair pair{std::move(left.view), std::move(right.view), std::move(left.steps)};
  pair.steps.insert(pair.steps.end(), right.steps.begin(), right.steps.end());
  pair.copies = std::move(left.copies);
  pair.copies.insert(pair.copies.end(), right.copies.begin(), right.copies.end());
  return pair;
}

}  // namespace tensordiff
