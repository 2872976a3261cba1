#include "align/view.h"

#include <algorithm>
#include <cassert>
#include <optional>

namespace tensordiff {
namespace {

template <class T>
void erase_at(std::vector<T>& values, std::size_t index) {
  values.erase(values.begin() + static_cast<std::ptrdiff_t>(index));
}

template <class T>
void insert_at(std::vector<T>& values, std::size_t index, T value) {
  values.insert(values.begin() + static_cast<std::ptrdiff_t>(index), value);
}

template <class T>
std::vector<T> reordered(const std::vector<T>& values, std::span<const uint64_t> order) {
  std::vector<T> result;
  result.reserve(order.size());
  for (const uint64_t from : order) result.push_back(values[from]);
  return result;
}

// The piece [first, first + count) of a part along an axis, which starts at `origin` there.
struct Piece {
  uint64_t first, count;
};

Part cut(Part part, std::size_t axis, Piece piece) {
  part.offset += (piece.first - part.origin[axis]) * static_cast<uint64_t>(part.strides[axis]);
  part.origin[axis] = piece.first;
  part.shape[axis] = piece.count;
  return part;
}

// A piece that lies within one row of `inner` entries, or is made of whole rows, as a box of two
// axes.
Part folded(Part part, std::size_t axis, uint64_t inner) {
  const uint64_t first = part.origin[axis];
  const uint64_t count = part.shape[axis];
  const bool whole_rows = first % inner == 0 && count % inner == 0;
  part.origin[axis] = first / inner;
  part.shape[axis] = whole_rows ? count / inner : 1;
  insert_at(part.origin, axis + 1, first % inner);
  insert_at(part.shape, axis + 1, whole_rows ? inner : count);
  insert_at(part.strides, axis + 1, part.strides[axis]);
  part.strides[axis] *= static_cast<int64_t>(inner);
  return part;
}

// Splits an axis in two. A part that begins or ends in the middle of a row of the new inner axis is
// no box any more and is cut into up to three: the rest of a row, whole rows, the start of a row.
View split_in_two(const View& view, std::size_t axis, uint64_t inner) {
  View result = view;
  result.parts.clear();
  result.shape[axis] /= inner;
  insert_at(result.shape, axis + 1, inner);
  for (const Part& part : view.parts) {
    uint64_t at = part.origin[axis];
    const uint64_t end = at + part.shape[axis];
    while (at < end) {
      const bool whole_rows = at % inner == 0 && end - at >= inner;
      const uint64_t stop = whole_rows ? end - end % inner : std::min(end, at - at % inner + inner);
      result.parts.push_back(folded(cut(part, axis, {at, stop - at}), axis, inner));
      at = stop;
    }
  }
  return result;
}

}  // namespace

View squeezed(View view, std::size_t axis) {
  assert(view.shape[axis] == 1);
  erase_at(view.shape, axis);
  for (Part& part : view.parts) {
    erase_at(part.origin, axis);
    erase_at(part.shape, axis);
    erase_at(part.strides, axis);
  }
  return view;
}

View permuted(const View& view, std::span<const uint64_t> order) {
  assert(order.size() == view.shape.size());
  View result = view;
  result.shape = reordered(view.shape, order);
  for (Part& part : result.parts) {
    part.origin = reordered(part.origin, order);
    part.shape = reordered(part.shape, order);
    part.strides = reordered(part.strides, order);
  }
  return result;
}

View split(const View& view, std::size_t axis, std::span<const uint64_t> sizes) {
  View result = view;
  uint64_t inner = view.shape[axis];
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
    assert(sizes[i] > 0 && inner % sizes[i] == 0);
    inner /= sizes[i];
    result = split_in_two(result, axis + i, inner);
  }
  return result;
}

bool can_flatten(const View& view) {
  if (view.parts.size() != 1) return false;
  std::optional<uint64_t> step;  // What one more entry of the last axis that was seen is worth.
  for (std::size_t axis = view.shape.size(); axis-- > 0;) {
    if (view.shape[axis] == 1) continue;
    const uint64_t stride = static_cast<uint64_t>(view.parts[0].strides[axis]);
    if (step && *step != stride) return false;
    step = stride * view.shape[axis];
  }
  return true;
}

View flattened(View view) {
  assert(can_flatten(view));
  Part& part = view.parts[0];
  int64_t step = 1;
  for (std::size_t axis = 0; axis < view.shape.size(); ++axis)
    if (view.shape[axis] != 1) step = part.strides[axis];
  view.shape = {view.elements()};
  part.origin = {0};
  part.shape = view.shape;
  part.strides = {step};
  return view;
}

View narrowed(View view, std::size_t axis, uint64_t first, uint64_t size) {
  assert(first + size <= view.shape[axis]);
  std::vector<Part> parts;
  for (Part& part : view.parts) {
    const uint64_t begin = std::max(part.origin[axis], first);
    const uint64_t end = std::min(part.origin[axis] + part.shape[axis], first + size);
    if (begin >= end) continue;
    parts.push_back(cut(std::move(part), axis, {begin, end - begin}));
    parts.back().origin[axis] -= first;
  }
  view.shape[axis] = size;
  view.parts = std::move(parts);
  return view;
}

View concatenated(std::span<const View> views, std::size_t axis) {
  View whole = views[0];
  for (const View& view : views.subspan(1)) {
    assert(view.dtype == whole.dtype && view.swapped == whole.swapped);
    assert(view.terms == whole.terms);  // Sums are put in a row term by term.
    for (Part part : view.parts) {
      part.origin[axis] += whole.shape[axis];
      whole.parts.push_back(std::move(part));
    }
    whole.shape[axis] += view.shape[axis];
  }
  return whole;
}

View summed(std::span<const View> views) {
  assert(can_encode(views[0].dtype));
  View sum = views[0];
  sum.terms = 0;
  sum.parts.clear();
  for (const View& view : views) {  // Which may be a sum itself.
    for (Part part : view.parts) {
      part.term += sum.terms;
      sum.parts.push_back(std::move(part));
    }
    sum.terms += view.terms;
  }
  return sum;
}

View truncated(View view, std::size_t axis, uint64_t size) {
  return narrowed(std::move(view), axis, 0, size);
}

View apply(const Step& step, View view) {
  const std::span<const uint64_t> argument = step.argument;
  if (step.op == Op::squeeze) return squeezed(std::move(view), argument[0]);
  if (step.op == Op::permute) return permuted(view, argument);
  if (step.op == Op::split) return split(view, argument[0], argument.subspan(1));
  if (step.op == Op::select)
    return narrowed(std::move(view), argument[0], argument[1], argument[2]);
  if (step.op == Op::flatten) return flattened(std::move(view));
  assert(step.op == Op::truncate);
  return truncated(std::move(view), argument[0], argument[1]);
}

}  // namespace tensordiff
