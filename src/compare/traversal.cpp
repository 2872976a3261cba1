#include "compare/traversal.h"

#include <algorithm>
#include <cstring>

#include "compare/kernels/tile.h"

namespace tensordiff {
namespace {

// The side of a box in which one view runs along one axis and the other along another: 256 × 256
// elements are a block, and 256 cache lines of either side fit the second-level cache.
constexpr uint64_t kBoxSide = 256;

// A run of elements on both the inner axis and the one around it.
struct Plane {
  const std::byte* from;
  int64_t outer_bytes;
  int64_t inner_bytes;
  std::size_t outer;
  std::size_t inner;
};

// Copies a plane whose elements lie together along the outer axis to row-major order. It reads runs
// of that axis and scatters them over a few rows of the result, which stay in the cache, while the
// lines of the next runs are on their way: they lie too far apart for the hardware to guess.
template <std::size_t kItem>
void copy_plane(const Plane& plane, std::byte* to) {
  constexpr std::size_t kRun = 32;
  constexpr std::size_t kAhead = 8;
  for (std::size_t row = 0; row < plane.outer; row += kRun) {
    const std::size_t rows = std::min(kRun, plane.outer - row);
    const std::byte* column = plane.from + static_cast<int64_t>(row) * plane.outer_bytes;
    for (std::size_t c = 0; c < plane.inner; ++c, column += plane.inner_bytes) {
      const std::byte* next = column + static_cast<int64_t>(kAhead) * plane.inner_bytes;
      __builtin_prefetch(next);
      __builtin_prefetch(next + 64);
      const std::byte* from = column;
      std::byte* out = to + (row * plane.inner + c) * kItem;
      for (std::size_t r = 0; r < rows; ++r, from += plane.outer_bytes, out += plane.inner * kItem)
        std::memcpy(out, from, kItem);
    }
  }
}

void copy_plane(const Plane& plane, std::size_t item, std::byte* to) {
  if (plane.inner_bytes == static_cast<int64_t>(item)) {
    for (std::size_t r = 0; r < plane.outer; ++r)
      std::memcpy(to + r * plane.inner * item,
                  plane.from + static_cast<int64_t>(r) * plane.outer_bytes, plane.inner * item);
    return;
  }
  switch (item) {
    case 1:
      return copy_plane<1>(plane, to);
    case 2:
      return copy_plane<2>(plane, to);
    case 4:
      return copy_plane<4>(plane, to);
    case 8:
      return copy_plane<8>(plane, to);
    default:
      return copy_plane<16>(plane, to);
  }
}

// The same for elements in blocks, which are decoded in runs along the axis they lie on:
// one at a time each would cost the decoding of a block.
struct BlockPlane {
  const Reader& reader;
  uint64_t first;
  int64_t outer_step;
  int64_t inner_step;
  std::size_t outer;
  std::size_t inner;
};

void copy_plane(const BlockPlane& plane, std::byte* to) {
  constexpr std::size_t kItem = sizeof(float);
  const auto at = [&](std::size_t i, int64_t step) {
    return plane.first + i * static_cast<uint64_t>(step);
  };
  if (plane.outer_step != 1 || plane.inner_step == 1) {
    for (std::size_t r = 0; r < plane.outer; ++r)
      plane.reader.copy_run(0, at(r, plane.outer_step), plane.inner_step, plane.inner,
                            to + r * plane.inner * kItem);
    return;
  }
  std::vector<std::byte> run(plane.outer * kItem);
  for (std::size_t c = 0; c < plane.inner; ++c) {
    plane.reader.copy_run(0, at(c, plane.inner_step), 1, plane.outer, run.data());
    for (std::size_t r = 0; r < plane.outer; ++r)
      std::memcpy(to + (r * plane.inner + c) * kItem, run.data() + r * kItem, kItem);
  }
}

bool simple(const View& view) {
  return view.parts.size() == 1 && (is_plain(view.dtype) || is_in_blocks(view.dtype));
}

}  // namespace

Traversal::Traversal(const Reader& a, const Reader& b)
    : a_(a),
      b_(b),
      elements_(a.view().elements()),
      blocks_((elements_ + kBlockElements - 1) / kBlockElements) {
  // Gathered shards and packed types are read flat; their rows are long enough.
  if (elements_ == 0 || !simple(a.view()) || !simple(b.view())) return;
  if (a.view().contiguous() && b.view().contiguous()) return;
  plan(merged_axes(a.view(), b.view()));
}

// The axes longer than one, neighbours joined where both sides run straight through them.
std::vector<Traversal::Axis> Traversal::merged_axes(const View& a, const View& b) {
  std::vector<Axis> axes;
  uint64_t step = 1;
  for (std::size_t at = a.shape.size(); at-- > 0;) {
    const Axis axis{a.shape[at], a.parts[0].strides[at], b.parts[0].strides[at], step, 1};
    step *= axis.size;
    if (axis.size == 1) continue;
    if (!axes.empty()) {
      Axis& inner = axes.back();
      const auto size = static_cast<int64_t>(inner.size);
      if (axis.stride_a == inner.stride_a * size && axis.stride_b == inner.stride_b * size) {
        inner.size *= axis.size;
        continue;
      }
    }
    axes.push_back(axis);
  }
  std::ranges::reverse(axes);
  return axes;
}

// Puts the fastest axis of a innermost and that of b around it, and sizes the boxes.
void Traversal::plan(std::vector<Axis> axes) {
  // A repeated axis (stride 0) is fast in name only: it is better left outside.
  const auto fastest = [&](int64_t Axis::*stride) {
    return std::ranges::min_element(
        axes, {}, [&](const Axis& axis) { return axis.*stride == 0 ? INT64_MAX : axis.*stride; });
  };
  const auto to_back = [&](auto axis) { std::rotate(axis, axis + 1, axes.end()); };
  if (axes.empty()) return;
  to_back(fastest(&Axis::stride_b));
  to_back(fastest(&Axis::stride_a));

  const bool crossed = axes.size() > 1 && axes.back().stride_b != 1;
  uint64_t room = kBlockElements;
  for (std::size_t at = axes.size(); at-- > 0;) {
    const bool inner_two = at + 2 >= axes.size();
    axes[at].extent = std::min({axes[at].size, room, crossed && inner_two ? kBoxSide : room});
    room /= axes[at].extent;
  }
  blocks_ = 1;
  for (const Axis& axis : axes) blocks_ *= (axis.size + axis.extent - 1) / axis.extent;
  axes_ = std::move(axes);
}

Traversal::Box Traversal::box(uint64_t block) const {
  Box found;
  found.origin.resize(axes_.size());
  found.shape.resize(axes_.size());
  for (std::size_t at = axes_.size(); at-- > 0;) {
    const Axis& axis = axes_[at];
    const uint64_t along = (axis.size + axis.extent - 1) / axis.extent;
    found.origin[at] = block % along * axis.extent;
    found.shape[at] = std::min(axis.extent, axis.size - found.origin[at]);
    found.count *= found.shape[at];
    block /= along;
  }
  return found;
}

void Traversal::gather(const Reader& reader, const Box& box, int64_t Axis::*stride,
                       std::vector<std::byte>& buffer) const {
  const View& view = reader.view();
  const std::size_t item = item_bytes(view.dtype);
  if (buffer.size() < box.count * item) buffer.resize(kBlockElements * item);
  const std::size_t rank = axes_.size();
  int64_t element = static_cast<int64_t>(view.parts[0].offset);
  for (std::size_t at = 0; at < rank; ++at)
    element += static_cast<int64_t>(box.origin[at]) * axes_[at].*stride;

  const auto bytes = static_cast<int64_t>(item);
  Plane plane = {nullptr, 0, axes_[rank - 1].*stride * bytes, 1, box.shape[rank - 1]};
  if (rank > 1) {
    plane.outer = box.shape[rank - 2];
    plane.outer_bytes = axes_[rank - 2].*stride * bytes;
  }
  // One plane of the two inner axes for each index of the outer ones.
  std::vector<uint64_t> index(rank, 0);
  std::byte* out = buffer.data();
  for (const std::byte* end = out + box.count * item; out != end;) {
    if (is_in_blocks(view.dtype) || view.parts[0].packed) {
      copy_plane(BlockPlane{reader, static_cast<uint64_t>(element), plane.outer_bytes / bytes,
                            plane.inner_bytes / bytes, plane.outer, plane.inner},
                 out);
    } else {
      plane.from = reader.data() + element * bytes;
      copy_plane(plane, item, out);
    }
    out += plane.outer * plane.inner * item;
    for (std::size_t at = rank - std::min<std::size_t>(rank, 2); at-- > 0;) {
      element += axes_[at].*stride;
      if (++index[at] < box.shape[at]) break;
      element -= static_cast<int64_t>(box.shape[at]) * axes_[at].*stride;
      index[at] = 0;
    }
  }
  if (view.swapped && is_plain(view.dtype)) swap_bytes(view.dtype, buffer.data(), box.count);
}

Traversal::Block Traversal::fetch(uint64_t block, std::vector<std::byte>& buffer_a,
                                  std::vector<std::byte>& buffer_b) const {
  if (flat()) {
    const uint64_t first = block * kBlockElements;
    const std::size_t count = std::min<uint64_t>(kBlockElements, elements_ - first);
    return {count, a_.raw(first, count, buffer_a), b_.raw(first, count, buffer_b)};
  }
  const Box found = box(block);
  gather(a_, found, &Axis::stride_a, buffer_a);
  gather(b_, found, &Axis::stride_b, buffer_b);
  return {found.count, buffer_a.data(), buffer_b.data()};
}

uint64_t Traversal::position(uint64_t block, std::size_t at) const {
  if (flat()) return block * kBlockElements + at;
  const Box found = box(block);
  uint64_t place = 0;
  for (std::size_t axis = axes_.size(); axis-- > 0;) {
    place += (found.origin[axis] + at % found.shape[axis]) * axes_[axis].step;
    at /= found.shape[axis];
  }
  return place;
}

}  // namespace tensordiff
