#include "formats/tf_slices.h"

#include <algorithm>
#include <bit>

#include "base/text.h"
#include "formats/protobuf.h"

namespace tensordiff::tf {
namespace {

constexpr std::size_t kPiecesMax = 4096;

// The number of bytes, then these, the highest first.
std::string ordered_number(uint64_t value) {
  std::string bytes;
  for (; value > 0; value >>= 8) bytes.insert(bytes.begin(), static_cast<char>(value));
  return static_cast<char>(bytes.size()) + bytes;
}

std::string ordered_text(std::string_view text) {
  std::string bytes;
  for (const char each : text) {
    bytes += each;
    if (each == '\0') bytes += '\xff';
    if (each == '\xff') bytes += '\0';
  }
  return bytes + std::string("\0\1", 2);
}

// As many leading ones as there are bytes, a zero that is the sign, then the number.
std::string ordered_signed(int64_t value) {
  const uint64_t size = value < 0 ? ~static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  const auto length = static_cast<std::size_t>(std::bit_width(size)) / 7 + 1;
  std::string bytes(10, value < 0 ? '\xff' : '\0');
  for (std::size_t i = 0; i < 8; ++i)
    bytes[2 + i] = static_cast<char>(static_cast<uint64_t>(value) >> 8 * (7 - i));
  bytes.erase(0, bytes.size() - length);
  for (std::size_t bit = 0; bit < length; ++bit)
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 0x80 >> bit % 8);
  return bytes;
}

bool overlap(const Part& a, const Part& b) {
  for (std::size_t axis = 0; axis < a.shape.size(); ++axis)
    if (a.origin[axis] >= b.origin[axis] + b.shape[axis] ||
        b.origin[axis] >= a.origin[axis] + a.shape[axis])
      return false;
  return true;
}

}  // namespace

Result<Slice> read_slice(ByteView message) {
  Slice slice;
  ProtoReader reader(message);
  while (const auto field = reader.next()) {
    if (!field->is_bytes(1)) continue;
    Extent extent;
    ProtoReader axis(field->bytes);
    while (const auto part = axis.next()) {
      if (part->is_varint(1)) extent.start = part->value;
      if (part->is_varint(2)) extent.length = part->value;
    }
    TRY(axis.finish());
    slice.push_back(extent);
    if (slice.size() > kRankMax) return Error("more than {} axes", kRankMax);
  }
  TRY(reader.finish());
  return slice;
}

std::string key_of(std::string_view name, const Slice& slice) {
  std::string key = ordered_number(0) + ordered_text(name) + ordered_number(slice.size());
  for (const Extent& extent : slice) {
    key += ordered_signed(static_cast<int64_t>(extent.start));
    key += ordered_signed(extent.length ? static_cast<int64_t>(*extent.length) : -1);
  }
  return key;
}

Result<Part> place_part(const Slice& slice, const Shape& shape) {
  if (slice.size() != shape.size())
    return Error("a piece of {} axes, of shape {}", slice.size(), shape_text(shape));
  Part part;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    const uint64_t length = slice[axis].length.value_or(shape[axis]);
    if (!range_fits(slice[axis].start, length, shape[axis]))
      return Error("a piece lies outside of the shape {}", shape_text(shape));
    part.origin.push_back(slice[axis].start);
    part.shape.push_back(length);
  }
  part.strides = contiguous_strides(part.shape);
  return part;
}

Result<View> joined(DType dtype, const Shape& shape, std::vector<Part> parts) {
  const std::optional<uint64_t> elements = element_count(shape);
  if (!elements) return Error("shape {} has more than 2^40 elements", shape_text(shape));
  if (parts.size() > kPiecesMax)
    return Error("{} pieces, the limit is {}", parts.size(), kPiecesMax);
  std::erase_if(parts, [](const Part& part) { return element_count(part.shape) == 0; });
  uint64_t covered = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    covered += *element_count(parts[i].shape);
    for (std::size_t j = 0; j < i; ++j)
      if (overlap(parts[i], parts[j])) return Error("two of its pieces overlap");
  }
  if (covered != *elements) return Error("its pieces hold {} of {} elements", covered, *elements);
  if (parts.empty()) return contiguous_view(dtype, shape, ByteSource());
  View view;
  view.dtype = dtype;
  view.shape = shape;
  view.parts = std::move(parts);
  return view;
}

}  // namespace tensordiff::tf
