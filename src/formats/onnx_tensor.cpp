#include "formats/onnx_tensor.h"

#include <charconv>

#include "base/text.h"
#include "formats/pickle/derived.h"
#include "formats/proto_elements.h"

namespace tensordiff::onnx {
namespace {

// By data_type; the third is which list holds the elements where they are not raw.
enum class List { floats, int32s, int64s, doubles, uint64s };
struct Type {
  uint64_t id;
  DType dtype;
  List list;
};
constexpr Type kTypes[] = {
    {1, DType::f32, List::floats},          {2, DType::u8, List::int32s},
    {3, DType::i8, List::int32s},           {4, DType::u16, List::int32s},
    {5, DType::i16, List::int32s},          {6, DType::i32, List::int32s},
    {7, DType::i64, List::int64s},          {9, DType::boolean, List::int32s},
    {10, DType::f16, List::int32s},         {11, DType::f64, List::doubles},
    {12, DType::u32, List::uint64s},        {13, DType::u64, List::uint64s},
    {14, DType::c64, List::floats},         {15, DType::c128, List::doubles},
    {16, DType::bf16, List::int32s},        {17, DType::f8_e4m3, List::int32s},
    {18, DType::f8_e4m3fnuz, List::int32s}, {19, DType::f8_e5m2, List::int32s},
    {20, DType::f8_e5m2fnuz, List::int32s}, {21, DType::u4, List::int32s},
    {22, DType::i4, List::int32s},          {23, DType::f4_e2m1, List::int32s},
    {24, DType::f8_e8m0, List::int32s},     {25, DType::u2, List::int32s},
    {26, DType::i2, List::int32s},
};

Result<Type> type_of(uint64_t id) {
  for (const Type& type : kTypes)
    if (type.id == id) return type;
  return Error("its data type {} is not known", id);
}

const ProtoNumbers& list_of(const TensorFields& fields, List list) {
  const ProtoNumbers* const kLists[] = {&fields.floats, &fields.int32s, &fields.int64s,
                                        &fields.doubles, &fields.uint64s};
  return *kLists[static_cast<std::size_t>(list)];
}

int storages(const TensorFields& fields) {
  int count = fields.raw.has_value() + fields.is_external;
  for (const List list : {List::floats, List::int32s, List::int64s, List::doubles, List::uint64s})
    count += !list_of(fields, list).empty();
  return count;
}

// A decimal number, and nothing else.
Result<uint64_t> whole_number(std::string_view text, std::string_view what) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, fault] = std::from_chars(text.data(), end, value);
  if (fault != std::errc() || stop != end || text.empty())
    return Error("the {} of its external data, '{}', is not a whole number", what,
                 printable(text, 40));
  return value;
}

Result<std::pair<std::string_view, std::string_view>> read_entry(ByteView message) {
  std::pair<std::string_view, std::string_view> entry;
  ProtoReader reader(message);
  while (const auto field = reader.next()) {
    if (field->is_bytes(1)) entry.first = field->text();
    if (field->is_bytes(2)) entry.second = field->text();
  }
  TRY(reader.finish());
  return entry;
}

}  // namespace

Result<void> TensorFields::read(ByteView message) {
  ProtoReader reader(message);
  ProtoNumbers dims;
  while (const auto field = reader.next()) {
    if (field->number == 1) dims.add(*field);
    if (field->is_varint(2)) type = field->value;
    if (field->number == 3) segment = true;
    if (field->number == 4) floats.add(*field);
    if (field->number == 5) int32s.add(*field);
    if (field->is_bytes(6)) strings.push_back(field->text());
    if (field->number == 7) int64s.add(*field);
    if (field->is_bytes(8)) name = field->text();
    if (field->is_bytes(9)) raw = field->bytes;
    if (field->number == 10) doubles.add(*field);
    if (field->number == 11) uint64s.add(*field);
    if (field->is_bytes(13)) {
      const auto [key, value] = TRY(read_entry(field->bytes));
      external[key] = value;
    }
    if (field->is_varint(14)) is_external = field->value == 1;
  }
  TRY(reader.finish());
  for (const uint64_t size : TRY(dims.varints(kRankMax).in("its shape"))) shape.push_back(size);
  return {};
}

Result<ByteSource> TensorReader::external_data(const TensorFields& fields, uint64_t needed) {
  const auto value_of = [&](std::string_view key) {
    const auto found = fields.external.find(key);
    return found == fields.external.end() ? std::string_view() : found->second;
  };
  const std::string location(value_of("location"));
  const std::string where = fmt::format("external data '{}'", printable(location));
  if (!input_.sibling) return Error("{} is missing", where);
  if (!files_.contains(location)) {
    // The name is looked up beside the model; what leads elsewhere is refused there.
    Result<ByteSource> file = input_.sibling(location);
    if (!file.ok()) return std::move(file).error().in("external data");
    files_[location] = std::move(file).value();
  }
  const ByteSource& file = files_[location];
  uint64_t offset = 0;
  if (fields.external.contains("offset")) offset = TRY(whole_number(value_of("offset"), "offset"));
  if (offset > file.size())
    return Error("{} has {} bytes, its offset is {}", where, file.size(), offset);
  uint64_t length = file.size() - offset;
  if (fields.external.contains("length")) length = TRY(whole_number(value_of("length"), "length"));
  if (!range_fits(offset, length, file.size()))
    return Error("{} has {} bytes, but {} at offset {} are needed", where, file.size(), length,
                 offset);
  if (length != needed)
    return Error("{} has {} bytes for it, its shape needs {}", where, length, needed);
  return file.slice(offset, length);
}

// Elements of a byte and less lie in numbers of 32 bits: a byte in each, or four.
Result<ByteSource> TensorReader::listed_bytes(DType dtype, const TensorFields& fields,
                                              uint64_t elements) {
  const ProtoList list{fields.int32s, input_.source, file_};
  const uint64_t count = TRY(list.count_varints());
  const uint64_t bytes = stored_bytes(dtype, elements);
  if (count == (bytes + 3) / 4 && count != bytes)
    return TRY(list.varints(count, 4)).slice(0, bytes);
  if (count != bytes) return Error("{} numbers are stored, its shape needs {} bytes", count, bytes);
  return list.varints(count, 1);
}

Result<ByteSource> TensorReader::listed_data(DType dtype, const TensorFields& fields,
                                             uint64_t elements) {
  const Type type = TRY(type_of(fields.type));
  const ProtoNumbers& numbers = list_of(fields, type.list);
  if (numbers.empty()) return Error("its elements are not where those of {} are", name_of(dtype));
  if (is_packed(dtype)) return listed_bytes(dtype, fields, elements);
  const ProtoList list{numbers, input_.source, file_};
  const uint64_t wanted = is_complex(dtype) ? 2 * elements : elements;
  const std::size_t item = item_bytes(dtype) / (is_complex(dtype) ? 2 : 1);
  const bool fixed = type.list == List::floats || type.list == List::doubles;
  const uint64_t count = TRY(fixed ? list.count_fixed(item) : list.count_varints());
  if (count != wanted) return Error("{} numbers are stored, its shape needs {}", count, wanted);
  if (fixed) return list.fixed();
  return list.varints(count, item);
}

Result<View> TensorReader::stored(DType dtype, const TensorFields& fields) {
  const std::optional<uint64_t> elements = element_count(fields.shape);
  if (!elements) return Error("shape {} has more than 2^40 elements", shape_text(fields.shape));
  const uint64_t needed = stored_bytes(dtype, *elements);
  const int found = storages(fields);
  if (found > 1) return Error("its elements are stored in {} places", found);
  if (found == 0 && *elements > 0) return Error("none of its {} elements are stored", *elements);
  ByteSource data;
  if (fields.raw) {
    if (fields.raw->size() != needed)
      return Error("{} bytes stored, but its shape needs {}", fields.raw->size(), needed);
    data = part_of(input_.source, file_, *fields.raw);
  } else if (fields.is_external) {
    data = TRY(external_data(fields, needed));
  } else if (found > 0) {
    data = TRY(listed_data(dtype, fields, *elements));
  }
  return contiguous_view(dtype, fields.shape, data);
}

Result<View> TensorReader::view_of(const TensorFields& fields) {
  if (fields.segment) return Error("it is one segment of a tensor");
  const Type type = TRY(type_of(fields.type));
  return stored(type.dtype, fields);
}

// Coordinates are one number for each value, counted row by row, or one for each axis.
Result<View> TensorReader::sparse(const TensorFields& values, const TensorFields& indices,
                                  Shape shape) {
  const View of_values = TRY(view_of(values).in("values"));
  View at = TRY(view_of(indices).in("indices"));
  if (at.dtype != DType::i64) return Error("its indices are {}, not i64", name_of(at.dtype));
  const std::optional<uint64_t> elements = element_count(shape);
  if (!elements) return Error("shape {} has more than 2^40 elements", shape_text(shape));
  const bool counted = at.shape.size() == 1;
  if (counted) {
    at.shape.insert(at.shape.begin(), 1);
    at.parts[0].strides.insert(at.parts[0].strides.begin(), 1);
    at.parts[0].origin.push_back(0);
  } else if (at.shape.size() == 2) {
    std::swap(at.shape[0], at.shape[1]);
    std::swap(at.parts[0].strides[0], at.parts[0].strides[1]);
  } else {
    return Error("its indices have shape {}", shape_text(at.shape));
  }
  at.parts[0].shape = at.shape;
  const View dense =
      TRY(pickle::sparse_coo(at, of_values, counted ? Shape{*elements} : shape, input_.limits));
  return contiguous_view(dense.dtype, std::move(shape), dense.parts[0].source);
}

}  // namespace tensordiff::onnx
