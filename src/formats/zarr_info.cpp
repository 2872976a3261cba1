#include "formats/zarr_info.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/checked_math.h"
#include "base/text.h"

namespace tensordiff::zarr {
namespace {

struct TypeName {
  std::string_view name;
  DType dtype;
};

// By kind and size, as numpy spells them in version 2, without the byte order.
constexpr TypeName kCodes[] = {
    {"b1", DType::boolean}, {"i1", DType::i8},    {"i2", DType::i16}, {"i4", DType::i32},
    {"i8", DType::i64},     {"u1", DType::u8},    {"u2", DType::u16}, {"u4", DType::u32},
    {"u8", DType::u64},     {"f2", DType::f16},   {"f4", DType::f32}, {"f8", DType::f64},
    {"c8", DType::c64},     {"c16", DType::c128},
};

// By name, as version 3 does, and tensorstore in version 2 for what numpy lacks.
constexpr TypeName kNames[] = {
    {"bool", DType::boolean},
    {"int8", DType::i8},
    {"int16", DType::i16},
    {"int32", DType::i32},
    {"int64", DType::i64},
    {"uint8", DType::u8},
    {"uint16", DType::u16},
    {"uint32", DType::u32},
    {"uint64", DType::u64},
    {"float16", DType::f16},
    {"float32", DType::f32},
    {"float64", DType::f64},
    {"bfloat16", DType::bf16},
    {"complex64", DType::c64},
    {"complex128", DType::c128},
    {"float8_e4m3fn", DType::f8_e4m3},
    {"float8_e5m2", DType::f8_e5m2},
    {"float8_e4m3fnuz", DType::f8_e4m3fnuz},
    {"float8_e5m2fnuz", DType::f8_e5m2fnuz},
    {"float8_e8m0fnu", DType::f8_e8m0},
};

std::optional<DType> find_type(std::span<const TypeName> types, std::string_view name) {
  for (const TypeName& type : types)
    if (type.name == name) return type.dtype;
  return std::nullopt;
}

Result<Shape> read_shape(const Json& sizes, std::string_view what) {
  if (!sizes.is_array()) return Error("its {} is not a list", what);
  if (sizes.array().size() > kRankMax)
    return Error("{} axes, at most {} are read", sizes.array().size(), kRankMax);
  Shape shape;
  for (const Json& size : sizes.array()) {
    if (!size.u64()) return Error("its {} has a size that is not a whole number", what);
    shape.push_back(*size.u64());
  }
  return shape;
}

template <class T>
void put(T value, std::string& out) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

constexpr std::string_view kStrangeFill = "its fill value is not understood";

// The lowest bytes, as many as an element has.
std::string lowest_bytes(DType dtype, uint64_t bits) {
  std::string out;
  put(bits, out);
  return out.substr(0, item_bytes(dtype));
}

// A number as an element. Of the smallest floats only zero is met in practice.
Result<std::string> element(DType dtype, double value) {
  std::string out;
  if (dtype == DType::c64) {
    put(static_cast<float>(value), out);
    put(0.0F, out);
  } else if (dtype == DType::c128) {
    put(value, out);
    put(0.0, out);
  } else if (can_encode(dtype)) {
    out.resize(item_bytes(dtype));
    encode(dtype, &value, 1, reinterpret_cast<std::byte*>(out.data()));
  } else if (value == 0) {
    out.resize(item_bytes(dtype));
  } else {
    return Error("{}", kStrangeFill);
  }
  return out;
}

Result<std::string> integer_element(DType dtype, const Json& value) {
  const auto bits = value.u64() ? *value.u64() : static_cast<uint64_t>(value.i64().value_or(0));
  const std::string out = lowest_bytes(dtype, bits);
  double stored = 0;
  decode(dtype, reinterpret_cast<const std::byte*>(out.data()), 1, &stored);
  if (stored != value.number())
    return Error("its type {} cannot hold its fill value", name_of(dtype));
  return out;
}

// A number, a word for one that JSON has not, or in version 3 the bits as "0x7fc00000".
Result<std::string> read_fill(const Json& value, DType dtype) {
  if (value.is_null()) return std::string(item_bytes(dtype), '\0');
  if (value.boolean() && is_integer(dtype)) return lowest_bytes(dtype, *value.boolean() ? 1 : 0);
  if (value.number() && is_integer(dtype)) return integer_element(dtype, value);
  if (value.number()) return element(dtype, *value.number());
  const std::string_view word = value.string();
  if (word == "NaN") return element(dtype, std::numeric_limits<double>::quiet_NaN());
  if (word == "Infinity") return element(dtype, std::numeric_limits<double>::infinity());
  if (word == "-Infinity") return element(dtype, -std::numeric_limits<double>::infinity());
  uint64_t bits = 0;
  const auto [end, fault] = std::from_chars(word.data() + std::min<std::size_t>(2, word.size()),
                                            word.data() + word.size(), bits, 16);
  if (word.starts_with("0x") && fault == std::errc() && end == word.data() + word.size() &&
      item_bytes(dtype) <= sizeof(bits)) {
    return lowest_bytes(dtype, bits);
  }
  return Error("{}", kStrangeFill);
}

std::vector<std::size_t> by_rows(std::size_t rank) {
  std::vector<std::size_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

Result<void> check_ranks(const ArrayInfo& array) {
  if (array.chunk_shape.size() != array.shape.size())
    return Error("chunks of {} axes in an array of {}", array.chunk_shape.size(),
                 array.shape.size());
  return {};
}

Result<void> read_type2(const Json& json, ArrayInfo& array) {
  if (!json.is_string()) return Error("elements with fields, which are not read");
  std::string_view code = json.string();
  const char order = code.empty() ? '|' : code[0];
  const bool ordered = order == '<' || order == '>' || order == '|';
  const std::optional<DType> dtype =
      ordered ? find_type(kCodes, code.substr(1)) : find_type(kNames, code);
  if (!dtype) return Error("elements of type '{}', which are not read", printable(code, 40));
  array.dtype = *dtype;
  array.swapped = order == '>' && item_bytes(*dtype) > 1;
  return {};
}

Result<Codec> codec_named(std::string_view name) {
  constexpr std::pair<std::string_view, Codec> kCodecs[] = {
      {"gzip", Codec::gzip},     {"zlib", Codec::zlib},
      {"zstd", Codec::zstd},     {"blosc", Codec::blosc},
      {"lz4", Codec::lz4},       {"shuffle", Codec::shuffle},
      {"crc32c", Codec::crc32c}, {"numcodecs.zlib", Codec::zlib},
  };
  for (const auto& [known, codec] : kCodecs)
    if (known == name) return codec;
  return Error("packed with '{}', which is not supported", printable(name, 40));
}

// Shuffling is undone by the size of the elements, which is nearly always what was shuffled.
Result<void> check_shuffle(const Json& configuration, DType dtype) {
  const uint64_t size = configuration["elementsize"].u64().value_or(4);
  if (size != item_bytes(dtype)) return Error("bytes shuffled by {}, which is not supported", size);
  return {};
}

// The codecs of version 3: some for arrays, "bytes", and then some for bytes.
Result<void> read_codec3(const Json& codec, ArrayInfo& array) {
  const std::string_view name = codec["name"].string();
  const Json& configuration = codec["configuration"];
  if (name == "transpose") {
    const Shape order = TRY(read_shape(configuration["order"], "order of axes"));
    array.order.assign(order.begin(), order.end());
    std::vector<std::size_t> sorted = array.order;
    std::ranges::sort(sorted);
    if (sorted != by_rows(array.shape.size())) return Error("its order of axes is malformed");
    return {};
  }
  if (name == "bytes") {
    array.swapped = configuration["endian"].string() == "big" && item_bytes(array.dtype) > 1;
    return {};
  }
  if (name == "sharding_indexed")
    return Error("in shards ('sharding_indexed'), which are not read");
  const Codec known = TRY(codec_named(name));
  if (known == Codec::shuffle) TRY(check_shuffle(configuration, array.dtype));
  array.codecs.push_back(known);
  return {};
}

}  // namespace

std::optional<Shape> ArrayInfo::grid_index(std::string_view name) const {
  if (shape.empty()) {
    const std::string only = prefix.empty() ? "0" : prefix.substr(0, prefix.size() - 1);
    return name == only ? std::optional<Shape>(Shape{}) : std::nullopt;
  }
  if (!name.starts_with(prefix)) return std::nullopt;
  Shape index;
  for (const std::string_view number : split(name.substr(prefix.size()), separator)) {
    uint64_t value = 0;
    const auto [end, fault] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (number.empty() || !all_digits(number) || fault != std::errc()) return std::nullopt;
    index.push_back(value);
  }
  return index.size() == shape.size() ? std::optional(index) : std::nullopt;
}

Result<ArrayInfo> read_version2(const Json& json) {
  ArrayInfo array;
  if (json["zarr_format"].u64() != 2) return Error("zarr_format is not 2");
  TRY(read_type2(json["dtype"], array));
  array.shape = TRY(read_shape(json["shape"], "shape"));
  array.chunk_shape = TRY(read_shape(json["chunks"], "chunks"));
  TRY(check_ranks(array));
  array.fill = TRY(read_fill(json["fill_value"], array.dtype));
  if (array.swapped) swap_bytes(array.dtype, reinterpret_cast<std::byte*>(array.fill.data()), 1);
  array.order = by_rows(array.shape.size());
  if (json["order"].string() == "F") std::ranges::reverse(array.order);
  if (json["dimension_separator"].string() == "/") array.separator = '/';
  for (const Json& filter : json["filters"].array()) {
    const Codec codec = TRY(codec_named(filter["id"].string()));
    if (codec == Codec::shuffle) TRY(check_shuffle(filter, array.dtype));
    array.codecs.push_back(codec);
  }
  if (!json["compressor"].is_null())
    array.codecs.push_back(TRY(codec_named(json["compressor"]["id"].string())));
  return array;
}

Result<ArrayInfo> read_version3(const Json& json) {
  ArrayInfo array;
  const std::string_view type = json["data_type"].string();
  const std::optional<DType> dtype = find_type(kNames, type);
  if (!dtype) return Error("elements of type '{}', which are not read", printable(type, 40));
  array.dtype = *dtype;
  array.shape = TRY(read_shape(json["shape"], "shape"));
  if (json["chunk_grid"]["name"].string() != "regular") return Error("a grid that is not regular");
  array.chunk_shape =
      TRY(read_shape(json["chunk_grid"]["configuration"]["chunk_shape"], "chunk_shape"));
  TRY(check_ranks(array));
  array.order = by_rows(array.shape.size());
  if (!json["codecs"].is_array()) return Error("no list of codecs");
  for (const Json& codec : json["codecs"].array()) TRY(read_codec3(codec, array));
  array.fill = TRY(read_fill(json["fill_value"], array.dtype));
  if (array.swapped) swap_bytes(array.dtype, reinterpret_cast<std::byte*>(array.fill.data()), 1);
  const Json& keys = json["chunk_key_encoding"];
  const bool as_before = keys["name"].string() == "v2";
  const std::string_view given = keys["configuration"]["separator"].string();
  array.separator = !given.empty() ? given[0] : as_before ? '.' : '/';
  if (!as_before) array.prefix = std::string("c") + array.separator;
  return array;
}

}  // namespace tensordiff::zarr
