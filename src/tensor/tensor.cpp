#include "tensor/tensor.h"

#include "base/text.h"

namespace tensordiff {

bool View::contiguous() const {
  if (parts.size() != 1) return false;
  uint64_t step = 1;  // Unsigned: see contiguous_strides().
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    if (shape[axis] == 1) continue;
    if (parts[0].strides[axis] != static_cast<int64_t>(step)) return false;
    step *= shape[axis];
  }
  return true;
}

Result<View> contiguous_view(DType dtype, Shape shape, ByteSource source) {
  if (shape.size() > kRankMax) return Error("{} axes, at most {} are read", shape.size(), kRankMax);
  const std::optional<uint64_t> count = element_count(shape);
  if (!count) return Error("shape {} has more than 2^40 elements", shape_text(shape));
  const uint64_t needed = stored_bytes(dtype, *count);
  if (needed > source.size())
    return Error("shape {} of {} needs {} bytes, {} are stored", shape_text(shape), name_of(dtype),
                 needed, source.size());
  Part part{Shape(shape.size(), 0), shape, contiguous_strides(shape), 0, std::move(source)};
  return View{dtype, false, std::move(shape), {std::move(part)}};
}

Result<View> strided_view(DType dtype, Shape shape, Strides strides, uint64_t offset,
                          ByteSource source) {
  if (shape.size() > kRankMax) return Error("{} axes, at most {} are read", shape.size(), kRankMax);
  if (strides.size() != shape.size())
    return Error("{} axes but {} strides", shape.size(), strides.size());
  const std::optional<uint64_t> count = element_count(shape);
  if (!count) return Error("shape {} has more than 2^40 elements", shape_text(shape));

  // The last element that the view touches must lie in the source.
  std::optional<uint64_t> last = offset;
  for (std::size_t axis = 0; *count > 0 && axis < shape.size(); ++axis) {
    if (strides[axis] < 0) return Error("negative stride {}", strides[axis]);
    const auto reach = checked_mul(shape[axis] - 1, static_cast<uint64_t>(strides[axis]));
    if (last) last = reach ? checked_add(*last, *reach) : std::nullopt;
  }
  const uint64_t stored = stored_elements(dtype, source.size());
  if (*count > 0 && (!last || *last >= stored))
    return Error("shape {} at offset {} reaches past the {} elements stored", shape_text(shape),
                 offset, stored);
  Part part{Shape(shape.size(), 0), shape, std::move(strides), offset, std::move(source)};
  return View{dtype, false, std::move(shape), {std::move(part)}};
}

Result<View> packed_view(DType dtype, Shape shape, Packed packed) {
  if (shape.size() > kRankMax) return Error("{} axes, at most {} are read", shape.size(), kRankMax);
  if (!element_count(shape))
    return Error("shape {} has more than 2^40 elements", shape_text(shape));
  Part part{Shape(shape.size(), 0), shape, contiguous_strides(shape), 0, ByteSource()};
  part.packed = std::make_shared<const Packed>(std::move(packed));
  return View{dtype, false, std::move(shape), {std::move(part)}};
}

Tensor broken_tensor(std::string name, std::string fault) {
  Tensor tensor;
  tensor.name = std::move(name);
  tensor.fault = std::move(fault);
  return tensor;
}

}  // namespace tensordiff
