#include "formats/tf_tensor.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/text.h"
#include "formats/checksum.h"
#include "formats/pickle/derived.h"
#include "formats/proto_elements.h"
#include "tensor/reader.h"

namespace tensordiff::tf {
namespace {

// By DataType. The field is the one of TensorProto that lists its values where they are not raw.
struct Type {
  uint64_t id;
  DType dtype;
  uint32_t field;
};
constexpr Type kTypes[] = {
    {1, DType::f32, 5},       {2, DType::f64, 6},       {3, DType::i32, 7},   {4, DType::u8, 7},
    {5, DType::i16, 7},       {6, DType::i8, 7},        {8, DType::c64, 9},   {9, DType::i64, 10},
    {10, DType::boolean, 11}, {11, DType::i8, 7},       {12, DType::u8, 7},   {13, DType::i32, 7},
    {14, DType::bf16, 13},    {15, DType::i16, 7},      {16, DType::u16, 7},  {17, DType::u16, 7},
    {18, DType::c128, 12},    {19, DType::f16, 13},     {22, DType::u32, 16}, {23, DType::u64, 17},
    {24, DType::f8_e5m2, 18}, {25, DType::f8_e4m3, 18},
};
constexpr uint64_t kReference = 100;  // Added to the type of a variable.

const Type* find_type(uint64_t id) {
  if (id > kReference) id -= kReference;
  const Type* found = std::ranges::find(kTypes, id, &Type::id);
  return found == std::end(kTypes) ? nullptr : found;
}

struct Fields {
  uint64_t type = 0;
  Shape shape;
  std::optional<ByteView> content;
  ProtoNumbers numbers[19];  // By field; few are used.
  std::vector<ByteView> strings;
};

Result<Fields> read_fields(ByteView message) {
  Fields fields;
  ProtoReader reader(message);
  while (const auto field = reader.next()) {
    if (field->is_varint(1)) fields.type = field->value;
    if (field->is_bytes(2)) fields.shape = TRY(read_shape(field->bytes));
    if (field->is_bytes(4)) fields.content = field->bytes;
    if (field->is_bytes(8)) fields.strings.push_back(field->bytes);
    if (field->number >= 5 && field->number <= 18 && field->number != 8)
      fields.numbers[field->number].add(*field);
  }
  TRY(reader.finish());
  return fields;
}

// The values that are stored, one after another.
Result<View> listed(const Type& type, const Fields& fields, const ByteSource& source,
                    const Bytes& file) {
  const ProtoList list{fields.numbers[type.field], source, file};
  const std::size_t parts = is_complex(type.dtype) ? 2 : 1;
  const std::size_t item = item_bytes(type.dtype) / parts;
  const bool fixed = type.field == 5 || type.field == 6 || parts == 2 || type.field == 18;
  const uint64_t count = TRY(fixed ? list.count_fixed(item) : list.count_varints());
  if (count % parts != 0) return Error("{} halves of complex numbers", count);
  const ByteSource data = fixed ? list.fixed() : TRY(list.varints(count, item));
  return contiguous_view(type.dtype, {count / parts}, data);
}

// One value for all elements: an axis of stride 0 repeats it.
Result<View> splat(DType dtype, const Shape& shape, const ByteSource& value) {
  return strided_view(dtype, shape, Strides(shape.size(), 0), 0, value);
}

// Fewer values than elements: the last one stands for the rest.
Result<View> filled_up(View stored, const Shape& shape) {
  const uint64_t count = stored.elements();
  const DType dtype = stored.dtype;
  const auto open = [stored = std::move(stored), count]() -> Result<pickle::Fill> {
    const auto reader = std::make_shared<const Reader>(TRY(Reader::open(stored)));
    return pickle::Fill([=](uint64_t first, std::size_t wanted, std::byte* out) {
      const std::size_t item = item_bytes(stored.dtype);
      std::vector<std::byte> buffer;
      for (std::size_t i = 0; i < wanted; ++i)
        std::memcpy(out + i * item, reader->raw(std::min(first + i, count - 1), 1, buffer), item);
    });
  };
  return pickle::made_in_order(dtype, shape, open);
}

Result<View> view_of(const Fields& fields, const ByteSource& source, const Bytes& file) {
  const DType dtype = TRY(dtype_of(fields.type));
  const std::optional<uint64_t> elements = element_count(fields.shape);
  if (!elements) return Error("shape {} has more than 2^40 elements", shape_text(fields.shape));
  if (fields.content && !fields.content->empty()) {
    const uint64_t needed = stored_bytes(dtype, *elements);
    if (fields.content->size() != needed)
      return Error("{} bytes stored, but its shape needs {}", fields.content->size(), needed);
    return contiguous_view(dtype, fields.shape, part_of(source, file, *fields.content));
  }
  const View stored = TRY(listed(*find_type(fields.type), fields, source, file));
  const uint64_t count = stored.elements();
  if (count > *elements) return Error("{} values stored, but its shape needs {}", count, *elements);
  if (count == *elements) return contiguous_view(dtype, fields.shape, stored.parts[0].source);
  if (count == 1) return splat(dtype, fields.shape, stored.parts[0].source);
  if (count == 0)
    return splat(dtype, fields.shape, ByteSource(bytes_of(std::string(item_bytes(dtype), '\0'))));
  return filled_up(stored, fields.shape);
}

}  // namespace

Result<DType> dtype_of(uint64_t type) {
  if (const Type* found = find_type(type)) return found->dtype;
  if (type > kReference) type -= kReference;
  constexpr std::pair<uint64_t, std::string_view> kOther[] = {
      {kString, "strings"}, {20, "resources"}, {21, "variants"}};
  for (const auto& [id, name] : kOther)
    if (id == type) return Error("it holds {}, not numbers", name);
  return Error("its data type {} is not known", type);
}

Result<Shape> read_shape(ByteView message) {
  Shape shape;
  ProtoReader reader(message);
  while (const auto field = reader.next()) {
    if (field->is_varint(3) && field->value != 0) return Error("its shape is not known");
    if (!field->is_bytes(2)) continue;
    uint64_t size = 0;
    ProtoReader axis(field->bytes);
    while (const auto part = axis.next())
      if (part->is_varint(1)) size = part->value;
    TRY(axis.finish());
    if (size > INT64_MAX) return Error("an axis of its shape has no size");
    shape.push_back(size);
    if (shape.size() > kRankMax) return Error("more than {} axes", kRankMax);
  }
  TRY(reader.finish());
  return shape;
}

Result<TensorValue> read_tensor(ByteView message, const ByteSource& source, const Bytes& file,
                                const std::optional<KnownTensor>& known) {
  Fields fields = TRY(read_fields(message));
  if (known) fields.shape = known->shape;
  if (known && fields.type == 0) fields.type = known->type;
  TensorValue value;
  value.type = fields.type > kReference ? fields.type - kReference : fields.type;
  value.view = view_of(fields, source, file);
  if (value.type == kString) {
    uint32_t sum = 0;
    for (const ByteView text : fields.strings) sum = crc32c(text, sum);
    value.strings = fmt::format("{} strings, crc32c {:08x}", fields.strings.size(), sum);
  }
  return value;
}

}  // namespace tensordiff::tf
