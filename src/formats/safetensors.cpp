// safetensors: a u64 header size, that many bytes of JSON, then the tensor bytes.
//
//   {"w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, "__metadata__": {...}}
//
// Offsets count from the end of the header. The tensors fill the rest of the file exactly: no hole,
// no overlap, nothing after the last. https://github.com/huggingface/safetensors

#include <algorithm>

#include "base/byte_cursor.h"
#include "base/json.h"
#include "base/text.h"
#include "formats/format.h"
#include "formats/limits.h"

namespace tensordiff {
namespace {

constexpr std::pair<std::string_view, DType> kTypes[] = {
    {"BOOL", DType::boolean},
    {"U8", DType::u8},
    {"I8", DType::i8},
    {"U16", DType::u16},
    {"I16", DType::i16},
    {"U32", DType::u32},
    {"I32", DType::i32},
    {"U64", DType::u64},
    {"I64", DType::i64},
    {"F16", DType::f16},
    {"BF16", DType::bf16},
    {"F32", DType::f32},
    {"F64", DType::f64},
    {"C64", DType::c64},
    {"F8_E4M3", DType::f8_e4m3},
    {"F8_E5M2", DType::f8_e5m2},
    {"F8_E4M3FNUZ", DType::f8_e4m3fnuz},
    {"F8_E5M2FNUZ", DType::f8_e5m2fnuz},
    {"F8_E8M0", DType::f8_e8m0},
    {"F6_E2M3", DType::f6_e2m3},
    {"F6_E3M2", DType::f6_e3m2},
    {"F4", DType::f4_e2m1},
};

// A tensor with its place, so that all of them can be put in the order of the file.
struct Placed {
  Tensor tensor;
  uint64_t begin;
  uint64_t end;
};

bool recognises(const Bytes& file) {
  ByteCursor cursor(file.view);
  const uint64_t header_bytes = cursor.u64();
  return header_bytes <= cursor.remaining() && cursor.u8() == '{';
}

Result<DType> parse_dtype(const Json& name) {
  for (const auto& [known, dtype] : kTypes)
    if (known == name.string()) return dtype;
  return Error("unknown dtype '{}'", printable(name.string(), 40));
}

Result<Shape> parse_shape(const Json& sizes) {
  if (!sizes.is_array()) return Error("its shape is not a list");
  Shape shape;
  for (const Json& size : sizes.array()) {
    if (!size.u64()) return Error("its shape has a size that is not a whole number");
    shape.push_back(*size.u64());
  }
  return shape;
}

Result<Placed> parse_tensor(const Json::Member& entry, const ByteSource& data) {
  const Json& fields = entry.value;
  if (!fields.is_object()) return Error("its entry is not an object");
  const DType dtype = TRY(parse_dtype(fields["dtype"]));
  const Shape shape = TRY(parse_shape(fields["shape"]));
  const Json& offsets = fields["data_offsets"];
  const std::optional<uint64_t> begin = offsets[0].u64();
  const std::optional<uint64_t> end = offsets[1].u64();
  if (offsets.array().size() != 2 || !begin || !end)
    return Error("its data_offsets are not two whole numbers");
  if (*begin > *end || *end > data.size())
    return Error("bytes [{}, {}) lie outside the {} bytes of data", *begin, *end, data.size());

  const std::optional<uint64_t> elements = element_count(shape);
  if (!elements) return Error("shape {} has more than 2^40 elements", shape_text(shape));
  const uint64_t bits = *elements * info(dtype).bits;
  if (bits % 8 != 0)
    return Error("shape {} of {} does not fill whole bytes", shape_text(shape), name_of(dtype));
  if (*end - *begin != bits / 8)
    return Error("{} bytes stored, but its shape needs {}", *end - *begin, bits / 8);
  View view = TRY(contiguous_view(dtype, shape, data.slice(*begin, *end - *begin)));
  return Placed{{entry.key, std::move(view), {}}, *begin, *end};
}

Result<void> check_coverage(const std::vector<Placed>& tensors, uint64_t data_bytes) {
  uint64_t covered = 0;
  for (const auto& [tensor, begin, end] : tensors) {
    if (begin > covered)
      return Error("tensor '{}': {} bytes before it belong to no tensor", printable(tensor.name),
                   begin - covered);
    if (begin < covered)
      return Error("tensor '{}' shares {} bytes with another", printable(tensor.name),
                   covered - begin);
    covered = end;
  }
  if (covered != data_bytes) return Error("{} bytes follow the last tensor", data_bytes - covered);
  return {};
}

Result<void> read_metadata(const Json& entries, Catalog& catalog) {
  if (!entries.is_object()) return Error("__metadata__ is not an object");
  for (const Json::Member& entry : entries.object()) {
    if (!entry.value.is_string())
      return Error("__metadata__ '{}' is not a string", printable(entry.key, 80));
    catalog.metadata.push_back({entry.key, std::string(entry.value.string())});
  }
  return {};
}

Result<Catalog> open(const Input& input) {
  const Bytes file = TRY(input.source.open());
  ByteCursor cursor(file.view);
  const uint64_t header_bytes = cursor.u64();
  if (header_bytes > input.limits.header_bytes_max)
    return limit_hit("header", fmt::format("a header of {} bytes is longer than {}", header_bytes,
                                           input.limits.header_bytes_max));
  const ByteView header = cursor.take(header_bytes);
  if (!cursor.ok()) return Error("the header is longer than the file");
  if (!as_text(header).starts_with('{')) return Error("the header does not start with '{{'");

  const Json index = TRY(Json::parse(as_text(header)).in("header"));
  const ByteSource data = input.source.slice(cursor.position(), cursor.remaining());
  if (index.object().size() > input.limits.tensors_max)
    return limit_hit("tensors", fmt::format("more than {} tensors", input.limits.tensors_max));
  Catalog catalog;
  std::vector<Placed> tensors;
  tensors.reserve(index.object().size());
  for (const Json::Member& entry : index.object()) {
    if (entry.key == "__metadata__") {
      TRY(read_metadata(entry.value, catalog));
    } else {
      Result<Placed> placed = parse_tensor(entry, data);
      if (!placed.ok())
        return std::move(placed).in(fmt::format("tensor '{}'", printable(entry.key))).error();
      tensors.push_back(std::move(placed).value());
    }
  }
  // Most files have them in order. An empty tensor goes before the one at its place.
  const auto place = [](const Placed& placed) { return std::pair(placed.begin, placed.end); };
  if (!std::ranges::is_sorted(tensors, {}, place)) std::ranges::stable_sort(tensors, {}, place);
  TRY(check_coverage(tensors, data.size()));
  catalog.tensors.reserve(tensors.size());
  for (Placed& placed : tensors) catalog.tensors.push_back(std::move(placed.tensor));
  return catalog;
}

}  // namespace

constinit const Format formats::safetensors = {
    .name = "safetensors",
    .summary = "Hugging Face safetensors, also sharded with an index",
    .extensions = ".safetensors",
    .recognises = recognises,
    .open = open,
};

}  // namespace tensordiff
