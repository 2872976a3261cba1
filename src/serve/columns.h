// Tables as columns: arrays that a browser can use without parsing. docs/http-api.md has the
// layout.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace tensordiff::serve {

inline constexpr std::string_view kColumnsType = "application/vnd.tensordiff.columns";

class Columns {
 public:
  explicit Columns(std::size_t rows) : rows_(rows) {}

  // Each of as many values as there are rows.
  void add(std::string_view name, const std::vector<uint8_t>& values) { put(name, "u8", values); }
  void add(std::string_view name, const std::vector<uint32_t>& values) { put(name, "u32", values); }
  void add(std::string_view name, const std::vector<int32_t>& values) { put(name, "i32", values); }
  void add(std::string_view name, const std::vector<double>& values) { put(name, "f64", values); }
  void add(std::string_view name, const std::vector<std::string>& values);

  // `members` stand in the header before the rest: "\"rev\":3,".
  std::string finish(std::string_view members) const;

 private:
  struct Column {
    std::string name;
    std::string_view type;
    std::size_t offset, bytes;
  };
  template <class T>
  void put(std::string_view name, std::string_view type, const std::vector<T>& values) {
    put_bytes(name, type,
              {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
  }
  void put_bytes(std::string_view name, std::string_view type, std::string_view bytes);

  std::size_t rows_;
  std::vector<Column> columns_;
  std::string data_;
};

}  // namespace tensordiff::serve
