// GGUF: what llama.cpp reads. Numbers are little-endian, or all big-endian from version 3 on.
//
//   "GGUF"  u32 version  u64 tensors  u64 keys
//   keys:    string key, u32 type, value; an array is u32 type, u64 count, values
//   tensors: string name, u32 axes, u64 sizes[axes] (fastest first), u32 type, u64 offset
//   padding to `general.alignment` (32), then the tensors at their offsets, aligned too
//
// A string is a u64 length and so many bytes. Version 1 has u32 for all counts, lengths and sizes.
// A model may be split in files `name-00001-of-00003.gguf`: see shards.h.
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md

#include <zlib.h>

#include <algorithm>
#include <unordered_set>

#include "base/byte_cursor.h"
#include "base/text.h"
#include "formats/audit.h"
#include "formats/limits.h"

namespace tensordiff {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr uint64_t kAxesMax = 4;
constexpr uint64_t kAlignmentMax = 1 << 20;
constexpr uint64_t kDefaultAlignment = 32;
constexpr uint64_t kShownMax = 8;  // Values of an array that stand in its metadata.

struct TensorType {
  uint32_t id;
  DType dtype;
};

constexpr TensorType kTypes[] = {
    {0, DType::f32},     {1, DType::f16},      {2, DType::q4_0},    {3, DType::q4_1},
    {6, DType::q5_0},    {7, DType::q5_1},     {8, DType::q8_0},    {10, DType::q2_k},
    {11, DType::q3_k},   {12, DType::q4_k},    {13, DType::q5_k},   {14, DType::q6_k},
    {15, DType::q8_k},   {16, DType::iq2_xxs}, {17, DType::iq2_xs}, {18, DType::iq3_xxs},
    {19, DType::iq1_s},  {20, DType::iq4_nl},  {21, DType::iq3_s},  {22, DType::iq2_s},
    {23, DType::iq4_xs}, {24, DType::i8},      {25, DType::i16},    {26, DType::i32},
    {27, DType::i64},    {28, DType::f64},     {29, DType::iq1_m},  {30, DType::bf16},
    {34, DType::tq1_0},  {35, DType::tq2_0},   {39, DType::mxfp4},  {40, DType::nvfp4},
    {41, DType::q1_0},   {42, DType::q2_0},
};

// Types that a file must not have, and why. Forks have used these numbers for types of their own.
struct RefusedType {
  uint32_t id;
  std::string_view name;
};
constexpr RefusedType kRefused[] = {
    {4, "q4_2, which ggml no longer has"},
    {5, "q4_3, which ggml no longer has"},
    {9, "q8_1, which is for computing: writers do not agree on its size"},
    {31, "q4_0_4_4, which ggml no longer has"},
    {32, "q4_0_4_8, which ggml no longer has"},
    {33, "q4_0_8_8, which ggml no longer has"},
    {36, "iq4_nl_4_4, which ggml no longer has"},
    {37, "iq4_nl_4_8, which ggml no longer has"},
    {38, "iq4_nl_8_8, which ggml no longer has"},
};

Result<DType> dtype_of(uint32_t id) {
  for (const TensorType& type : kTypes)
    if (type.id == id) return type.dtype;
  for (const RefusedType& refused : kRefused)
    if (refused.id == id) return Error("it is of type {}", refused.name);
  return Error("its type {} is not known", id);
}

enum class ValueType : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array };
constexpr std::string_view kValueNames[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                            "bool", "string", "array", "u64", "i64", "f64"};
constexpr uint64_t kValueBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};  // At least.

struct Placed {
  Tensor tensor;
  uint64_t begin;
  uint64_t end;
};

class Parser {
 public:
  Parser(const Input& input, const Bytes& file, bool look_at_padding = false)
      : input_(input), cursor_(file.view), all_(file.view), look_at_padding_(look_at_padding) {}

  Result<Catalog> parse() {
    TRY(read_header());
    for (uint64_t i = 0; i < keys_; ++i) TRY(read_key().in(fmt::format("key {}", i)));
    TRY(find_alignment());
    std::vector<Record> records;
    for (uint64_t i = 0; i < tensors_; ++i)
      records.push_back(TRY(read_record().in(fmt::format("tensor {}", i))));
    TRY(place(records));
    return std::move(catalog_);
  }

 private:
  struct Record {
    std::string name;
    Shape shape;
    uint32_t type = 0;
    uint64_t offset = 0;
  };

  uint64_t length() { return version_ == 1 ? cursor_.u32() : cursor_.u64(); }

  Error cut_short() const { return Error("the file ends at byte {}, inside it", all_.size()); }

  Result<void> read_header() {
    if (as_text(cursor_.take(kMagic.size())) != kMagic) return Error("it does not start with GGUF");
    version_ = cursor_.u32();
    // In the other byte order a small number has its low half empty.
    if (version_ != 0 && (version_ & 0xffff) == 0) {
      cursor_ = ByteCursor(all_, std::endian::big);
      big_endian_ = true;
      cursor_.skip(kMagic.size());
      version_ = cursor_.u32();
    }
    if (cursor_.ok() && (version_ < 1 || version_ > 3))
      return Error("version {} is not known; 1 to 3 are", version_);
    tensors_ = length();
    keys_ = length();
    if (!cursor_.ok()) return Error("the file ends inside its header");
    TRY(check_count(tensors_, "tensors"));
    return check_count(keys_, "keys");
  }

  // Each key and each tensor takes 10 bytes and more.
  Result<void> check_count(uint64_t count, std::string_view what) const {
    if (count > input_.limits.entries_max)
      return limit_hit(
          "entries", fmt::format("{} {} are more than {}", count, what, input_.limits.entries_max));
    if (count > cursor_.remaining() / 10)
      return Error("{} {} do not fit in a file of {} bytes", count, what, all_.size());
    return {};
  }

  Result<std::string_view> read_string() {
    const uint64_t bytes = length();
    if (bytes > input_.limits.string_bytes_max)
      return limit_hit("string", fmt::format("a string of {} is longer than {}", human_bytes(bytes),
                                             human_bytes(input_.limits.string_bytes_max)));
    const ByteView text = cursor_.take(bytes);
    if (!cursor_.ok()) return cut_short();
    return as_text(text);
  }

  Result<void> read_key() {
    const std::string_view key = TRY(read_string());
    if (key.empty()) return Error("it has no name");
    const std::string where = fmt::format("'{}'", printable(key, 80));
    if (!seen_.insert(key).second) return Error("{} is there twice", where);
    const uint32_t type = cursor_.u32();
    if (!cursor_.ok()) return cut_short();
    std::string value = TRY(read_value(type).in(where));
    if (key == "general.alignment") {
      if (static_cast<ValueType>(type) != ValueType::u32)
        return Error("{} is of type {} instead of u32", where, kValueNames[type]);
      alignment_ = std::stoull(value);
    }
    catalog_.metadata.push_back({std::string(key), std::move(value)});
    return {};
  }

  Result<void> check_value_type(uint32_t type) const {
    if (type >= std::size(kValueNames)) return Error("type {} of its value is not known", type);
    return {};
  }

  Result<std::string> read_value(uint32_t type) {
    TRY(check_value_type(type));
    if (static_cast<ValueType>(type) == ValueType::array) return read_array();
    std::string text = TRY(read_scalar(type));
    if (!cursor_.ok()) return cut_short();
    return text;
  }

  Result<std::string> read_scalar(uint32_t type) {
    switch (type) {
      case 0:
        return fmt::format("{}", cursor_.u8());
      case 1:
        return fmt::format("{}", static_cast<int8_t>(cursor_.u8()));
      case 2:
        return fmt::format("{}", cursor_.u16());
      case 3:
        return fmt::format("{}", static_cast<int16_t>(cursor_.u16()));
      case 4:
        return fmt::format("{}", cursor_.u32());
      case 5:
        return fmt::format("{}", cursor_.i32());
      case 6:
        return fmt::format("{}", cursor_.f32());
      case 7:
        return std::string(cursor_.u8() != 0 ? "true" : "false");
      case 8:
        return std::string(TRY(read_string()));
      case 10:
        return fmt::format("{}", cursor_.u64());
      case 11:
        return fmt::format("{}", cursor_.i64());
      default:
        return fmt::format("{}", cursor_.f64());
    }
  }

  // The first values, and where there are more a checksum that stands for all.
  Result<std::string> read_array() {
    const uint32_t type = cursor_.u32();
    const uint64_t count = length();
    if (!cursor_.ok()) return cut_short();
    TRY(check_value_type(type));
    if (static_cast<ValueType>(type) == ValueType::array) return Error("an array of arrays");
    const uint64_t smallest = version_ == 1 && type == 8 ? 4 : kValueBytes[type];
    if (count > cursor_.remaining() / smallest)
      return Error("{} values of {} are more than the file holds", count, kValueNames[type]);
    const uint64_t begin = cursor_.position();
    std::string text = "[";
    for (uint64_t i = 0; i < count; ++i) {
      if (i < kShownMax) {
        text += (i ? ", " : "") + TRY(read_scalar(type)).substr(0, 80);
      } else if (static_cast<ValueType>(type) == ValueType::string) {
        TRY(read_string());
      } else {
        cursor_.skip(kValueBytes[type] * (count - i));
        break;
      }
    }
    if (!cursor_.ok()) return cut_short();
    if (count <= kShownMax) return text + "]";
    const ByteView bytes = all_.subspan(begin, cursor_.position() - begin);
    return text +
           fmt::format(", …] {} of {}, crc32 {:08x}", count, kValueNames[type],
                       crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  }

  Result<void> find_alignment() const {
    if (alignment_ == 0 || alignment_ % 8 != 0 || alignment_ > kAlignmentMax)
      return Error("general.alignment {} is not a multiple of 8 up to {}", alignment_,
                   kAlignmentMax);
    return {};
  }

  Result<Record> read_record() {
    Record record;
    record.name = TRY(read_string());
    const std::string where = fmt::format("'{}'", printable(record.name, 80));
    if (record.name.size() > input_.limits.name_bytes_max)
      return limit_hit("name", fmt::format("a name of {} bytes is longer than {}",
                                           record.name.size(), input_.limits.name_bytes_max));
    if (!names_.insert(record.name).second) return Error("{} is there twice", where);
    const uint32_t axes = cursor_.u32();
    if (cursor_.ok() && axes > kAxesMax)
      return Error("{} has {} axes, there are at most {}", where, axes, kAxesMax);
    for (uint32_t axis = 0; axis < axes && cursor_.ok(); ++axis) record.shape.push_back(length());
    std::ranges::reverse(record.shape);
    record.type = cursor_.u32();
    record.offset = cursor_.u64();
    if (!cursor_.ok()) return cut_short();
    return record;
  }

  Result<Placed> locate(const Record& record, const ByteSource& data) const {
    const DType dtype = TRY(dtype_of(record.type));
    const uint64_t block = info(dtype).block;
    const std::optional<uint64_t> elements = element_count(record.shape);
    if (!elements) return Error("shape {} has more than 2^40 elements", shape_text(record.shape));
    if (block > 1 && (record.shape.empty() || record.shape.back() % block != 0))
      return Error("rows of shape {} are not whole blocks of {} {}", shape_text(record.shape),
                   block, name_of(dtype));
    const uint64_t bytes = stored_bytes(dtype, *elements);
    if (!range_fits(record.offset, bytes, data.size()))
      return Error("{} bytes at {} lie outside the {} bytes of data", bytes, record.offset,
                   data.size());
    View view = TRY(contiguous_view(dtype, record.shape, data.slice(record.offset, bytes)));
    view.swapped = big_endian_ && (block > 1 || item_bytes(dtype) > 1);
    return Placed{{record.name, std::move(view), {}}, record.offset, record.offset + bytes};
  }

  Result<void> place(const std::vector<Record>& records) {
    const uint64_t start = (cursor_.position() + alignment_ - 1) / alignment_ * alignment_;
    // A file without tensors may end before the padding.
    const uint64_t begin = std::min<uint64_t>(start, all_.size());
    const ByteSource data = input_.source.slice(begin, all_.size() - begin);
    data_ = all_.subspan(begin);
    std::vector<Placed> placed;
    for (const Record& record : records) {
      const std::string where = fmt::format("tensor '{}'", printable(record.name));
      if (record.offset % alignment_ != 0)
        return Error("{}: its offset {} is not a multiple of the alignment, {}", where,
                     record.offset, alignment_);
      if (const Result<DType> dtype = dtype_of(record.type); !dtype.ok()) {
        catalog_.tensors.push_back(broken_tensor(record.name, dtype.error().message()));
        continue;
      }
      placed.push_back(TRY(locate(record, data).in(where)));
      catalog_.tensors.push_back(placed.back().tensor);
    }
    return check_coverage(std::move(placed));
  }

  // Tensors share nothing, and between them there is nothing but padding.
  Result<void> check_coverage(std::vector<Placed> placed) {
    std::ranges::stable_sort(placed, {},
                             [](const Placed& each) { return std::pair(each.begin, each.end); });
    // Where a tensor of a type that is not known ends cannot be told.
    const bool all_known = placed.size() == catalog_.tensors.size();
    uint64_t covered = 0;
    for (const auto& [tensor, begin, end] : placed) {
      if (begin == end) continue;
      if (begin < covered)
        return Error("tensor '{}' shares {} bytes with another", printable(tensor.name),
                     std::min(covered, end) - begin);
      if (all_known)
        note_gap(covered, begin, fmt::format("before tensor '{}'", printable(tensor.name)));
      covered = end;
    }
    if (!placed.empty() && all_known) note_gap(covered, data_.size(), "after the last tensor");
    return {};
  }

  // Between two tensors there may be padding up to the next multiple. That it is zeros is only
  // looked at when asked for: opening touches no data.
  void note_gap(uint64_t begin, uint64_t end, std::string_view where) {
    const uint64_t padded = (begin + alignment_ - 1) / alignment_ * alignment_;
    const ByteView padding = data_.subspan(begin, std::min(padded, end) - begin);
    const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
    if (end > padded)
      catalog_.problems.push_back(
          {"", fmt::format("{} bytes {} belong to none", end - padded, where)});
    if (look_at_padding_ && !std::ranges::all_of(padding, is_zero))
      catalog_.problems.push_back({"", fmt::format("the padding {} is not zeros", where)});
  }

  const Input& input_;
  ByteCursor cursor_;
  ByteView all_;
  ByteView data_;  // Behind the header.
  bool look_at_padding_;
  bool big_endian_ = false;
  uint32_t version_ = 0;
  uint64_t tensors_ = 0, keys_ = 0;
  uint64_t alignment_ = kDefaultAlignment;
  std::unordered_set<std::string_view> seen_;
  std::unordered_set<std::string> names_;
  Catalog catalog_;
};

bool recognises(const Bytes& file) { return as_text(file.view).starts_with(kMagic); }

Result<Catalog> open(const Input& input) {
  const Bytes file = TRY(input.source.open());
  return Parser(input, file).parse();
}

std::vector<Problem> audit(const Input& input) {
  const Result<Bytes> file = input.source.open();
  if (!file.ok()) return {};
  const Result<Catalog> catalog = Parser(input, file.value(), true).parse();
  return catalog.ok() ? catalog.value().problems : std::vector<Problem>();
}

}  // namespace

constinit const Format formats::gguf = {
    .name = "gguf",
    .summary = "GGUF models of llama.cpp, also split; quantized blocks are decoded",
    .extensions = ".gguf",
    .recognises = recognises,
    .open = open,
};

constinit const Auditor audits::gguf = {
    .format = &formats::gguf,
    .audit = audit,
};

}  // namespace tensordiff
