#include "formats/flat_parts.h"

namespace tensordiff {
namespace {

// Cuts a range into boxes from the outer axes in: whole steps along an axis are one box, and what
// is left at either end is a range one axis further in.
class Cutter {
 public:
  Cutter(View& view, const ByteSource& source, uint64_t first, uint64_t offset)
      : view_(view),
        source_(source),
        strides_(contiguous_strides(view.shape)),
        first_(first),
        offset_(offset) {}

  // [begin, end) lies inside one step of the axis before `axis`.
  void cut(std::size_t axis, uint64_t begin, uint64_t end) {
    if (begin == end) return;
    if (view_.shape.empty()) return add(0, begin, 1);
    const auto step = static_cast<uint64_t>(strides_[axis]);
    const uint64_t first_whole = (begin + step - 1) / step;
    const uint64_t last_whole = end / step;
    if (first_whole >= last_whole && step > 1) {
      const uint64_t middle = std::min(first_whole * step, end);
      cut(axis + 1, begin, middle);
      return cut(axis + 1, middle, end);
    }
    if (step > 1) cut(axis + 1, begin, first_whole * step);
    add(axis, first_whole * step, last_whole - first_whole);
    if (step > 1) cut(axis + 1, last_whole * step, end);
  }

 private:
  // `steps` whole steps along an axis from a flat position on.
  void add(std::size_t axis, uint64_t begin, uint64_t steps) {
    Part part;
    part.origin = index_at(view_.shape, begin);
    part.shape = view_.shape;
    for (std::size_t outer = 0; outer < axis; ++outer) part.shape[outer] = 1;
    if (!part.shape.empty()) part.shape[axis] = steps;
    part.strides = strides_;
    part.offset = offset_ + (begin - first_);
    part.source = source_;
    view_.parts.push_back(std::move(part));
  }

  View& view_;
  const ByteSource& source_;
  Strides strides_;
  uint64_t first_;
  uint64_t offset_;
};

}  // namespace

void add_flat_part(View& view, uint64_t first, uint64_t count, const ByteSource& source,
                   uint64_t offset) {
  Cutter(view, source, first, offset).cut(0, first, first + count);
}

}  // namespace tensordiff
