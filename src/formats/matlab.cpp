// MATLAB .mat files of versions 4, 5 and 7. (Version 7.3 is HDF5.)
//
// Version 5: 116 bytes of text, 8 of no interest here, a version, and "IM" (little-endian) or "MI".
// Then elements: a type u32, a count of bytes u32, the bytes, padded to 8; or where the upper half
// of the type is not 0, that is the count and up to 4 bytes follow at once. Version 7 is the same
// with variables packed by zlib (type 15). An array (type 14) is made of elements again: flags,
// sizes, name, then its numbers, or its cells, or its fields.
//
// Version 4: for each variable five i32 (type as the decimal digits MOPT: byte order, 0, precision,
// kind; rows, columns, whether complex, bytes of the name), the name, the numbers by column.

#include <algorithm>

#include "base/byte_cursor.h"
#include "base/text.h"
#include "formats/compressed.h"
#include "formats/inflate.h"
#include "formats/limits.h"
#include "formats/matlab_array.h"

namespace tensordiff {
namespace {

constexpr uint64_t kHeaderBytes = 128;
constexpr uint32_t kInt8 = 1, kInt32 = 5, kUint32 = 6, kMatrix = 14, kPacked = 15, kUtf8 = 16;
enum Class : uint8_t { cell = 1, structure, object, text, sparse, f64_class, last_number = 15 };

std::optional<DType> stored_type(uint32_t type) {
  constexpr std::pair<uint32_t, DType> kTypes[] = {
      {1, DType::i8},   {2, DType::u8},   {3, DType::i16}, {4, DType::u16},
      {5, DType::i32},  {6, DType::u32},  {7, DType::f32}, {9, DType::f64},
      {12, DType::i64}, {13, DType::u64}, {16, DType::u8},
  };
  for (const auto& [number, dtype] : kTypes)
    if (number == type) return dtype;
  return std::nullopt;
}

std::optional<DType> class_type(uint8_t number) {
  constexpr DType kTypes[] = {DType::f64, DType::f32, DType::i8,  DType::u8,  DType::i16,
                              DType::u16, DType::i32, DType::u32, DType::i64, DType::u64};
  if (number < f64_class || number > last_number) return std::nullopt;
  return kTypes[number - f64_class];
}

struct Element {
  uint32_t type = 0;
  Bytes data;
};

// Elements one after another.
class Elements {
 public:
  Elements(Bytes bytes, std::endian order)
      : bytes_(std::move(bytes)), cursor_(bytes_.view, order) {}

  bool at_end() const { return cursor_.remaining() < 8; }

  Result<Element> next() {
    Element element;
    element.type = cursor_.u32();
    uint64_t bytes = element.type >> 16;
    const bool small = bytes > 0;
    if (!small) bytes = cursor_.u32();
    element.type &= 0xffff;
    if (small && bytes > 4) return Error("a short element of {} bytes", bytes);
    const uint64_t at = cursor_.position();
    if (!cursor_.ok() || bytes > cursor_.remaining())
      return Error("an element of {} bytes, but {} are left", bytes, cursor_.remaining());
    element.data = bytes_.slice(at, bytes);
    const uint64_t padded = small ? 4 : element.type == kPacked ? bytes : (bytes + 7) / 8 * 8;
    cursor_.seek(at + std::min(padded, cursor_.remaining()));
    return element;
  }

  Result<Element> next_of(uint32_t type, std::string_view what) {
    Element element = TRY(next());
    if (element.type != type)
      return Error("element of type {} where its {} belong", element.type, what);
    return element;
  }

 private:
  Bytes bytes_;
  ByteCursor cursor_;
};

class MatlabReader {
 public:
  MatlabReader(const Bytes& file, const Limits& limits) : file_(file), limits_(limits) {
    swapped_ = as_text(file.view).substr(126, 2) == "MI";
    order_ = swapped_ ? std::endian::big : std::endian::little;
  }

  Result<Catalog> read() {
    Elements variables(file_.slice(kHeaderBytes, file_.size() - kHeaderBytes), order_);
    for (uint64_t i = 1; !variables.at_end(); ++i)
      TRY(read_variable(variables).in(fmt::format("variable {}", i)));
    make_names_unique(catalog_);
    return std::move(catalog_);
  }

 private:
  Result<void> read_variable(Elements& variables) {
    Element element = TRY(variables.next());
    if (element.type == kPacked) {
      Sink sink = TRY(Sink::create(element.data.size(), limits_));
      TRY(inflate_zlib(element.data.view, [&](ByteView piece) { return sink.add(piece); }));
      const Bytes plain = TRY(std::move(sink).finish());
      element = TRY(Elements(plain, order_).next());
    }
    if (element.type != kMatrix) return Error("element of type {}, not an array", element.type);
    return read_array(element.data, "", 0);
  }

  struct Head {
    uint8_t kind = 0;
    bool complex = false, logical = false;
    Shape shape;
    std::string name;
  };

  Result<Head> read_head(Elements& parts) const {
    const Element flags = TRY(parts.next_of(kUint32, "flags"));
    if (flags.data.size() != 8) return Error("flags of {} bytes", flags.data.size());
    const uint32_t bits = ByteCursor(flags.data.view, order_).u32();
    Head head{static_cast<uint8_t>(bits & 0xff), (bits & 0x800) != 0, (bits & 0x200) != 0, {}, ""};
    if (head.kind >= 16) return head;  // Functions and objects of classes: nothing else is known.
    Element sizes = TRY(parts.next());
    if (sizes.type != kInt32 && sizes.type != kUint32)  // Some writers have the latter.
      return Error("element of type {} where its sizes belong", sizes.type);
    if (sizes.data.size() / 4 > kRankMax || sizes.data.size() < 8)
      return Error("{} axes", sizes.data.size() / 4);
    ByteCursor cursor(sizes.data.view, order_);
    while (cursor.remaining() >= 4) {
      const int32_t size = cursor.i32();
      if (size < 0) return Error("negative size {}", size);
      head.shape.push_back(static_cast<uint64_t>(size));
    }
    const Element name = TRY(parts.next());
    head.name = as_text(name.data.view);
    const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
    if (name.type != kInt8 && !(name.type == kUtf8 && std::ranges::all_of(head.name, is_ascii)))
      return Error("element of type {} where its name belongs", name.type);
    return head;
  }

  // An array and what is in it. `name` is empty for a variable, which has its own.
  Result<void> read_array(const Bytes& bytes, std::string name, int depth) {
    if (static_cast<uint64_t>(depth) > limits_.depth_max)
      return limit_hit("depth", fmt::format("nested deeper than {}", limits_.depth_max));
    if (bytes.size() == 0) return {};  // An empty cell.
    Elements parts(bytes, order_);
    const Head head = TRY(read_head(parts));
    if (name.empty()) name = head.name;
    if (head.kind >= 16 || head.kind == 0) {
      catalog_.problems.push_back({name, "an object of MATLAB's own, which is not read"});
      return {};
    }
    if (name.empty() || head.kind == text) return {};
    if (head.kind == cell) return read_cells(parts, head, name, depth);
    if (head.kind == structure || head.kind == object) return read_fields(parts, head, name, depth);
    return read_numbers(parts, head, name).in(printable(name));
  }

  Result<uint64_t> count_of(const Head& head) const {
    const std::optional<uint64_t> count = element_count(head.shape);
    if (!count || *count > limits_.tensors_max)
      return limit_hit("tensors", fmt::format("more than {} cells", limits_.tensors_max));
    return *count;
  }

  Result<void> read_cells(Elements& parts, const Head& head, const std::string& name, int depth) {
    const uint64_t count = TRY(count_of(head));
    for (uint64_t i = 0; i < count; ++i) {
      const Element inside = TRY(parts.next_of(kMatrix, "cells"));
      TRY(read_array(inside.data, fmt::format("{}.{}", name, i), depth + 1));
    }
    return {};
  }

  Result<void> read_fields(Elements& parts, const Head& head, const std::string& name, int depth) {
    if (head.kind == object) TRY(parts.next());  // The name of its class.
    const Element length = TRY(parts.next_of(kInt32, "length of field names"));
    const Element names = TRY(parts.next());
    const int32_t bytes = ByteCursor(length.data.view, order_).i32();
    if (bytes <= 0 || names.data.size() % static_cast<uint64_t>(bytes) != 0)
      return Error("'{}': field names of {} bytes", printable(name), bytes);
    const uint64_t fields = names.data.size() / static_cast<uint64_t>(bytes);
    const uint64_t count = TRY(count_of(head));
    for (uint64_t i = 0; i < count; ++i) {
      for (uint64_t field = 0; field < fields; ++field) {
        const Element inside = TRY(parts.next_of(kMatrix, "fields"));
        std::string_view key =
            as_text(names.data.view)
                .substr(field * static_cast<uint64_t>(bytes), static_cast<uint64_t>(bytes));
        key = key.substr(0, key.find('\0'));
        TRY(read_array(
            inside.data,
            count == 1 ? fmt::format("{}.{}", name, key) : fmt::format("{}.{}.{}", name, i, key),
            depth + 1));
      }
    }
    return {};
  }

  Result<void> read_numbers(Elements& parts, const Head& head, const std::string& name) {
    MatlabNumbers numbers;
    numbers.dtype = head.kind == sparse ? DType::f64 : class_type(head.kind).value_or(DType::f64);
    numbers.shape = head.shape;
    numbers.swapped = swapped_;
    numbers.complex = head.complex;
    Element rows, starts;
    if (head.kind == sparse) {
      rows = TRY(parts.next_of(kInt32, "row indices"));
      starts = TRY(parts.next_of(kInt32, "column starts"));
    }
    const Element real = TRY(parts.next());
    const std::optional<DType> stored = stored_type(real.type);
    if (!stored) return Error("numbers of type {}", real.type);
    numbers.stored = *stored;
    numbers.real = real.data;
    if (head.complex) {
      const Element imaginary = TRY(parts.next_of(real.type, "imaginary parts"));
      numbers.imaginary = imaginary.data;
    }
    numbers.logical = head.logical;
    if (head.logical && head.kind != sparse) numbers.dtype = DType::boolean;
    Result<View> view = head.kind == sparse
                            ? matlab_sparse_view(numbers, rows.data, starts.data, limits_)
                            : matlab_view(numbers);
    Tensor tensor = broken_tensor(name, view.ok() ? "" : view.error().message());
    if (view.ok()) tensor.view = std::move(view).value();
    catalog_.tensors.push_back(std::move(tensor));
    if (catalog_.tensors.size() > limits_.tensors_max)
      return limit_hit("tensors", fmt::format("more than {} arrays", limits_.tensors_max));
    return {};
  }

  Bytes file_;
  const Limits& limits_;
  bool swapped_ = false;
  std::endian order_ = std::endian::little;
  Catalog catalog_;
};

bool is_version5(const Bytes& file) {
  const std::string_view text = as_text(file.view);
  return text.size() >= kHeaderBytes && text.starts_with("MATLAB") &&
         (text.substr(126, 2) == "IM" || text.substr(126, 2) == "MI") &&
         (text.size() < 516 || text.substr(512, 4) != "\x89HDF");
}

// One variable of version 4, and where the next begins.
struct Variable4 {
  std::string name;
  bool is_text = false, is_sparse = false;
  MatlabNumbers numbers;
};

Result<Variable4> read_variable4(const Bytes& file, uint64_t& at) {
  constexpr DType kPrecisions[] = {DType::f64, DType::f32, DType::i32,
                                   DType::i16, DType::u16, DType::u8};
  if (file.size() - at < 20) return Error("a header that is cut short");
  const bool big = ByteCursor(file.view.subspan(at)).u32() > 9999;
  ByteCursor cursor(file.view.subspan(at), big ? std::endian::big : std::endian::little);
  const uint32_t type = cursor.u32();
  const int32_t rows = cursor.i32(), columns = cursor.i32();
  const uint32_t complex = cursor.u32(), name_bytes = cursor.u32();
  if (type > 9999 || type / 1000 != (big ? 1 : 0) || type / 100 % 10 != 0 || type / 10 % 10 > 5 ||
      type % 10 > 2 || rows < 0 || columns < 0 || complex > 1 || name_bytes == 0 ||
      name_bytes > 4096)
    return Error("not the header of a variable");
  Variable4 variable;
  variable.is_text = type % 10 == 1;
  variable.is_sparse = type % 10 == 2;
  const std::string_view name = as_text(cursor.take(name_bytes));
  if (!cursor.ok() || name.empty() || name.back() != '\0') return Error("a name that does not end");
  variable.name = name.substr(0, name.find('\0'));
  for (const unsigned char c : variable.name)
    if (c < 0x20 || c > 0x7e) return Error("a name that is not text");
  MatlabNumbers& numbers = variable.numbers;
  numbers.dtype = numbers.stored = kPrecisions[type / 10 % 10];
  numbers.swapped = big && item_bytes(numbers.stored) > 1;
  numbers.shape = {static_cast<uint64_t>(rows), static_cast<uint64_t>(columns)};
  numbers.complex = complex == 1;
  const std::optional<uint64_t> count = element_count(numbers.shape);
  const uint64_t begin = at + cursor.position(), left = file.size() - begin;
  const uint64_t bytes = count.value_or(kElementsMax) * item_bytes(numbers.stored);
  if (!count || bytes > left / (numbers.complex ? 2 : 1))
    return Error("'{}' needs more than the {} bytes left", variable.name, left);
  numbers.real = file.slice(begin, bytes);
  if (numbers.complex) numbers.imaginary = file.slice(begin + bytes, bytes);
  at = begin + bytes * (numbers.complex ? 2 : 1);
  return variable;
}

bool is_version4(const Bytes& file) {
  uint64_t at = 0;
  return file.size() >= 20 && read_variable4(file, at).ok() &&
         (at == file.size() || read_variable4(file, at).ok());
}

Result<Catalog> read_version4(const Bytes& file, const Limits& limits) {
  if (file.size() == 0) return Error("an empty file");
  Catalog catalog;
  for (uint64_t at = 0, i = 1; at < file.size(); ++i) {
    const Variable4 variable = TRY(read_variable4(file, at).in(fmt::format("variable {}", i)));
    if (variable.is_text) continue;
    Tensor tensor = broken_tensor(variable.name, "");
    Result<View> view = variable.is_sparse ? matlab_sparse4_view(variable.numbers, limits)
                                           : matlab_view(variable.numbers);
    if (view.ok()) tensor.view = std::move(view).value();
    if (!view.ok()) tensor.fault = view.error().message();
    catalog.tensors.push_back(std::move(tensor));
    if (catalog.tensors.size() > limits.tensors_max)
      return limit_hit("tensors", fmt::format("more than {} arrays", limits.tensors_max));
  }
  make_names_unique(catalog);
  return catalog;
}

bool recognises(const Bytes& file) { return is_version5(file) || is_version4(file); }

Result<Catalog> open(const Input& input) {
  const Bytes file = TRY(input.source.open());
  if (is_version5(file)) return MatlabReader(file, input.limits).read();
  return read_version4(file, input.limits);
}

}  // namespace

constinit const Format formats::matlab = {
    .name = "matlab",
    .summary = "MATLAB files of versions 4, 5 and 7; 7.3 is hdf5",
    .extensions = ".mat",
    .recognises = recognises,
    .open = open,
};

}  // namespace tensordiff
