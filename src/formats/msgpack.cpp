// Flax checkpoints: one msgpack map of maps, with arrays as extension values.
//
//   type 1   an array: msgpack of [shape, name of the dtype, bytes], row-major
//   type 3   a numpy scalar, the same
//   type 2   a complex number: [real, imaginary]
//
// An array of more than 1 GiB is a map {"__msgpack_chunked_array__": true, "shape": {"0": ...},
// "chunks": {"0": array, ...}}: the chunks lie in a row. Lists are maps of "0", "1" ...

#include <map>

#include "base/byte_cursor.h"
#include "base/text.h"
#include "formats/flat_parts.h"
#include "formats/limits.h"

namespace tensordiff {
namespace {

constexpr std::string_view kChunked = "__msgpack_chunked_array__";

enum class ItemKind { nil, boolean, integer, real, text, binary, array, map, extension };

// The head of one value: what it is, and its number, length or count.
struct Value {
  ItemKind kind = ItemKind::nil;
  uint64_t count = 0;   // Bytes of a string, items of an array, pairs of a map.
  int64_t integer = 0;  // Also of a boolean.
  double real = 0;
  int8_t extension = 0;
};

std::optional<DType> dtype_of(std::string_view numpy_name) {
  constexpr std::pair<std::string_view, DType> kNames[] = {
      {"float64", DType::f64},
      {"float32", DType::f32},
      {"float16", DType::f16},
      {"bfloat16", DType::bf16},
      {"float8_e4m3fn", DType::f8_e4m3},
      {"float8_e5m2", DType::f8_e5m2},
      {"float8_e4m3fnuz", DType::f8_e4m3fnuz},
      {"float8_e5m2fnuz", DType::f8_e5m2fnuz},
      {"int64", DType::i64},
      {"int32", DType::i32},
      {"int16", DType::i16},
      {"int8", DType::i8},
      {"uint64", DType::u64},
      {"uint32", DType::u32},
      {"uint16", DType::u16},
      {"uint8", DType::u8},
      {"bool", DType::boolean},
      {"complex64", DType::c64},
      {"complex128", DType::c128},
  };
  for (const auto& [name, dtype] : kNames)
    if (name == numpy_name) return dtype;
  return std::nullopt;
}

class MsgpackReader {
 public:
  MsgpackReader(Bytes bytes, const Limits& limits)
      : bytes_(std::move(bytes)), cursor_(bytes_.view, std::endian::big), limits_(limits) {}

  Result<Catalog> read() {
    const Value root = TRY(next());
    if (root.kind != ItemKind::map) return Error("not a map of tensors");
    TRY(read_map(root.count, "", 0).in(fmt::format("byte {}", cursor_.position())));
    if (!cursor_.at_end())
      return Error("byte {}: the map ends here, but {} bytes follow it", cursor_.position(),
                   cursor_.remaining());
    make_names_unique(catalog_);
    return std::move(catalog_);
  }

 private:
  Result<Value> sized(ItemKind kind, uint64_t count, uint64_t bytes_each) {
    if (!cursor_.ok() || count > cursor_.remaining() / bytes_each)
      return Error("a length of {}, but only {} bytes are left", count, cursor_.remaining());
    Value value;
    value.kind = kind;
    value.count = count;
    return value;
  }

  uint64_t length(int bytes) {
    return bytes == 1 ? cursor_.u8() : bytes == 2 ? cursor_.u16() : cursor_.u32();
  }

  Value number(int64_t integer) {
    Value value;
    value.kind = ItemKind::integer;
    value.integer = integer;
    return value;
  }

  Result<Value> extension(uint64_t count) {
    const auto type = static_cast<int8_t>(cursor_.u8());
    Value value = TRY(sized(ItemKind::extension, count, 1));
    value.extension = type;
    return value;
  }

  // Reads the head of the next value; what belongs to it follows.
  Result<Value> next() {
    if (cursor_.at_end()) return Error("the file ends where a value belongs");
    const uint8_t code = cursor_.u8();
    if (code < 0x80) return number(code);
    if (code < 0x90) return sized(ItemKind::map, code & 15, 2);
    if (code < 0xa0) return sized(ItemKind::array, code & 15, 1);
    if (code < 0xc0) return sized(ItemKind::text, code & 31, 1);
    if (code >= 0xe0) return number(static_cast<int8_t>(code));
    if (code >= 0xc4 && code <= 0xc6) return sized(ItemKind::binary, length(1 << (code - 0xc4)), 1);
    if (code >= 0xc7 && code <= 0xc9) return extension(length(1 << (code - 0xc7)));
    if (code >= 0xd4 && code <= 0xd8) return extension(uint64_t{1} << (code - 0xd4));
    if (code >= 0xd9 && code <= 0xdb) return sized(ItemKind::text, length(1 << (code - 0xd9)), 1);
    if (code >= 0xdc && code <= 0xdd) return sized(ItemKind::array, length(2 << (code - 0xdc)), 1);
    if (code >= 0xde && code <= 0xdf) return sized(ItemKind::map, length(2 << (code - 0xde)), 2);
    return plain(code);
  }

  Result<Value> plain(uint8_t code) {
    Value value;
    switch (code) {
      case 0xc0:
        return value;
      case 0xc2:
      case 0xc3:
        value.kind = ItemKind::boolean;
        value.integer = code - 0xc2;
        break;
      case 0xca:
      case 0xcb:
        value.kind = ItemKind::real;
        value.real = code == 0xca ? static_cast<double>(cursor_.f32()) : cursor_.f64();
        break;
      case 0xcc:
        return number(cursor_.u8());
      case 0xcd:
        return number(cursor_.u16());
      case 0xce:
        return number(cursor_.u32());
      case 0xcf:
        return number(cursor_.i64());
      case 0xd0:
        return number(static_cast<int8_t>(cursor_.u8()));
      case 0xd1:
        return number(static_cast<int16_t>(cursor_.u16()));
      case 0xd2:
        return number(cursor_.i32());
      case 0xd3:
        return number(cursor_.i64());
      default:
        return Error("byte {:#x} begins no value", code);
    }
    if (!cursor_.ok()) return Error("the file ends in a number");
    return value;
  }

  Bytes take(uint64_t count) {
    const uint64_t at = cursor_.position();
    cursor_.skip(count);
    return bytes_.slice(at, count);
  }

  Result<std::string> key() {
    const Value value = TRY(next());
    if (value.kind == ItemKind::integer) return std::to_string(value.integer);
    if (value.kind != ItemKind::text && value.kind != ItemKind::binary)
      return Error("a key that is not text");
    return std::string(as_text(take(value.count).view));
  }

  Result<void> read_map(uint64_t count, const std::string& path, int depth) {
    for (uint64_t i = 0; i < count; ++i) {
      const std::string name = TRY(key());
      if (name == kChunked) return read_chunked(count - i, path);
      TRY(read_value(path.empty() ? name : path + "." + name, depth + 1));
    }
    return {};
  }

  Result<void> read_value(const std::string& path, int depth) {
    if (static_cast<uint64_t>(depth) > limits_.depth_max)
      return limit_hit("depth", fmt::format("nested deeper than {}", limits_.depth_max));
    if (path.size() > limits_.name_bytes_max)
      return limit_hit("name", fmt::format("a name of more than {} bytes", limits_.name_bytes_max));
    const Value value = TRY(next());
    switch (value.kind) {
      case ItemKind::map:
        return read_map(value.count, path, depth);
      case ItemKind::array:
        for (uint64_t i = 0; i < value.count; ++i)
          TRY(read_value(fmt::format("{}.{}", path, i), depth + 1));
        return {};
      case ItemKind::extension:
        return add(path, read_array(value.extension, take(value.count)));
      case ItemKind::text:
      case ItemKind::binary:
        take(value.count);
        return {};
      case ItemKind::integer:
      case ItemKind::boolean: {
        const auto* bytes = reinterpret_cast<const char*>(&value.integer);
        return add(path, contiguous_view(DType::i64, {}, ByteSource(bytes_of({bytes, 8}))));
      }
      case ItemKind::real: {
        const auto* bytes = reinterpret_cast<const char*>(&value.real);
        return add(path, contiguous_view(DType::f64, {}, ByteSource(bytes_of({bytes, 8}))));
      }
      case ItemKind::nil:
        return {};
    }
    return {};
  }

  // An extension value: msgpack again.
  Result<View> read_array(int8_t extension, const Bytes& bytes) const {
    MsgpackReader inside(bytes, limits_);
    const Value head = TRY(inside.next());
    if (extension == 2 && head.kind == ItemKind::array && head.count == 2) {
      const Value re = TRY(inside.next()), im = TRY(inside.next());
      const double both[2] = {re.real, im.real};
      const auto* memory = reinterpret_cast<const char*>(both);
      return contiguous_view(DType::c128, {}, ByteSource(bytes_of({memory, sizeof(both)})));
    }
    if (extension != 1 && extension != 3) return Error("extension type {} is not known", extension);
    if (head.kind != ItemKind::array || head.count != 3)
      return Error("not a shape, a type and bytes");
    Shape shape = TRY(inside.shape());
    const std::string name = TRY(inside.key());
    const std::optional<DType> dtype = dtype_of(name);
    if (!dtype) return Error("element type '{}' is not supported", printable(name));
    const Value data = TRY(inside.next());
    if (data.kind != ItemKind::binary && data.kind != ItemKind::text)
      return Error("no bytes in it");
    const std::optional<uint64_t> count = element_count(shape);
    if (!count || *count * item_bytes(*dtype) != data.count)
      return Error("{} bytes stored, but its shape {} of {} needs others", data.count,
                   shape_text(shape), name_of(*dtype));
    const Bytes elements = inside.take(data.count);
    if (!inside.cursor_.at_end()) return Error("bytes behind the array");
    return contiguous_view(*dtype, std::move(shape), ByteSource(elements));
  }

  // A list of sizes, or a map of "0", "1" ...
  Result<Shape> shape() {
    const Value list = TRY(next());
    if (list.kind != ItemKind::array && list.kind != ItemKind::map)
      return Error("a shape that is not a list");
    if (list.count > kRankMax) return Error("{} axes, at most {} are read", list.count, kRankMax);
    Shape sizes;
    for (uint64_t i = 0; i < list.count; ++i) {
      if (list.kind == ItemKind::map && TRY(key()) != std::to_string(i))
        return Error("the sizes are not in order");
      const Value size = TRY(next());
      if (size.kind != ItemKind::integer || size.integer < 0)
        return Error("a size that is not a whole number");
      sizes.push_back(static_cast<uint64_t>(size.integer));
    }
    return sizes;
  }

  // Behind the key that marks it: true, and then shape and chunks. `entries` are those left.
  Result<void> read_chunked(uint64_t entries, const std::string& path) {
    TRY(next());
    View view;
    std::vector<View> chunks;
    for (uint64_t i = 1; i < entries; ++i) {
      const std::string name = TRY(key());
      if (name == "shape") {
        view.shape = TRY(shape());
      } else if (name == "chunks") {
        chunks = TRY(read_chunks());
      } else {
        return Error("'{}' in a chunked array", printable(name));
      }
    }
    const std::optional<uint64_t> count = element_count(view.shape);
    if (!count) return Error("shape {} is too large", shape_text(view.shape));
    uint64_t first = 0;
    for (const View& chunk : chunks) {
      if (chunk.dtype != chunks[0].dtype) return Error("chunks of several types");
      if (chunk.elements() > *count - first) return Error("more elements than its shape has");
      view.dtype = chunk.dtype;
      add_flat_part(view, first, chunk.elements(), chunk.parts[0].source, 0);
      first += chunk.elements();
    }
    if (first != *count)
      return Error("'{}': its chunks hold {} of {} elements", printable(path), first, *count);
    return add(path, std::move(view));
  }

  Result<std::vector<View>> read_chunks() {
    const Value list = TRY(next());
    if (list.kind != ItemKind::map && list.kind != ItemKind::array)
      return Error("chunks that are not a list");
    std::vector<View> chunks;
    for (uint64_t i = 0; i < list.count; ++i) {
      if (list.kind == ItemKind::map && TRY(key()) != std::to_string(i))
        return Error("the chunks are not in order");
      const Value chunk = TRY(next());
      if (chunk.kind != ItemKind::extension) return Error("a chunk that is not an array");
      chunks.push_back(TRY(read_array(chunk.extension, take(chunk.count))));
    }
    return chunks;
  }

  Result<void> add(const std::string& path, Result<View> view) {
    Tensor tensor = broken_tensor(path, view.ok() ? "" : view.error().message());
    if (view.ok()) tensor.view = std::move(view).value();
    catalog_.tensors.push_back(std::move(tensor));
    if (catalog_.tensors.size() > limits_.tensors_max)
      return limit_hit("tensors", fmt::format("more than {} tensors", limits_.tensors_max));
    return {};
  }

  Bytes bytes_;
  ByteCursor cursor_;
  const Limits& limits_;
  Catalog catalog_;
};

// A map whose first key is text, and which ends where the file does. There is no magic number.
bool recognises(const Bytes& file) {
  if (file.size() < 4) return false;
  const auto first = std::to_integer<uint8_t>(file.view[0]);
  if (!(first > 0x80 && first < 0x90) && first != 0xde && first != 0xdf) return false;
  const Result<Catalog> catalog = MsgpackReader(file, Limits()).read();
  return catalog.ok() && !catalog.value().tensors.empty();
}

Result<Catalog> open(const Input& input) {
  const Bytes file = TRY(input.source.open());
  return MsgpackReader(file, input.limits).read();
}

}  // namespace

constinit const Format formats::msgpack = {
    .name = "msgpack",
    .summary = "Flax checkpoints: msgpack maps of arrays",
    .extensions = ".msgpack",
    .recognises = recognises,
    .open = open,
};

}  // namespace tensordiff
