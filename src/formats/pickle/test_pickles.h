// For tests: pickles put together opcode by opcode, and what a reader makes of them.

#pragma once

#include <string>
#include <vector>

#include "formats/test_files.h"
#include "tensor/reader.h"

namespace tensordiff::test_pickles {

using test_files::f32;
using test_files::input;
using test_files::u32;
using test_files::u64;

inline const std::string kProto2 = "\x80\x02";

inline std::string text(std::string_view value) {
  return "X" + u32(static_cast<uint32_t>(value.size())) + std::string(value);
}
inline std::string blob(std::string_view value) {
  return "B" + u32(static_cast<uint32_t>(value.size())) + std::string(value);
}
inline std::string number(int32_t value) { return "J" + u32(static_cast<uint32_t>(value)); }
inline std::string tuple(const std::vector<std::string>& items) {
  std::string out = "(";
  for (const std::string& item : items) out += item;
  return out + "t";
}
inline std::string numbers(const std::vector<int32_t>& values) {
  std::vector<std::string> items;
  for (const int32_t value : values) items.push_back(number(value));
  return tuple(items);
}
inline std::string global(std::string_view module, std::string_view name) {
  return "c" + std::string(module) + "\n" + std::string(name) + "\n";
}
inline std::string call(const std::string& callee, const std::vector<std::string>& args) {
  return callee + tuple(args) + "R";
}
inline std::string dict(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string out = "}(";
  for (const auto& [key, value] : entries) out += text(key) + value;
  return out + "u";
}

inline std::string storage(std::string_view type, std::string_view key, int32_t count) {
  return tuple({text("storage"), global("torch", type), text(key), text("cpu"), number(count)}) +
         "Q";
}
inline const std::string kNoHooks = global("collections", "OrderedDict") + ")R";

struct Strided {
  std::string storage;
  int32_t offset = 0;
  std::vector<int32_t> size;
  std::vector<int32_t> stride;
};
inline std::string tensor(const Strided& t) {
  return call(global("torch._utils", "_rebuild_tensor_v2"),
              {t.storage, number(t.offset), numbers(t.size), numbers(t.stride), "\x89", kNoHooks});
}

// A torch file in a zip: the pickle of `root` and the storages by key.
inline std::string torch_zip(const std::string& root,
                             const std::vector<std::pair<std::string, std::string>>& storages,
                             std::string_view byteorder = "little") {
  std::vector<test_files::ZipFile> files(2);
  files[0].name = "m/data.pkl";
  files[0].data = kProto2 + root + ".";
  files[1].name = "m/byteorder";
  files[1].data = byteorder;
  for (const auto& [key, data] : storages) {
    files.emplace_back();
    files.back().name = "m/data/" + key;
    files.back().data = data;
  }
  return test_files::zip(files);
}

// All that a catalog holds in a few words: "w f32 [2] 1 2; problem: ...". A broken tensor is shown
// with its fault, a refused file as "! " and the error.
inline std::string told(const Format& format, const std::string& file) {
  const Result<Catalog> catalog = format.open(input(file));
  if (!catalog.ok()) return "! " + catalog.error().message();
  std::string out;
  for (const Tensor& t : catalog.value().tensors) {
    out += out.empty() ? "" : "; ";
    if (!t.fault.empty()) {
      out += t.name + ": " + t.fault;
      continue;
    }
    out += t.name + " " + std::string(name_of(t.view.dtype)) + " [";
    for (std::size_t axis = 0; axis < t.view.shape.size(); ++axis)
      out += (axis ? "," : "") + std::to_string(t.view.shape[axis]);
    out += "]";
    const Result<Reader> reader = Reader::open(t.view);
    if (!reader.ok()) {
      out += " unreadable: " + reader.error().message();
      continue;
    }
    std::vector<double> values(t.elements() * (is_complex(t.view.dtype) ? 2 : 1));
    if (!values.empty()) reader.value().components(0, t.elements(), values.data());
    for (const double value : values) out += fmt::format(" {:g}", value);
  }
  for (const Problem& problem : catalog.value().problems) out += " | " + problem.message;
  return out;
}
inline std::string told_pickle(const std::string& pickle) { return told(formats::pickle, pickle); }
inline std::string told_zip(const std::string& root,
                            const std::vector<std::pair<std::string, std::string>>& storages) {
  return told(formats::torch_zip, torch_zip(root, storages));
}

}  // namespace tensordiff::test_pickles
