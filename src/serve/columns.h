// Tables as columns: arrays that a browser can use without parsing. docs/http-api.md has the
// layout.

#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace tensordiff::serve {

inline constexpr std::string_view kColumnsType = "application/vnd.tensordiff.columns";

// The cells of one column, as they come; all of one type.
class ColumnCells {
 public:
  void add(uint8_t value) { put("u8", value); }
  void add(uint32_t value) { put("u32", value); }
  void add(int32_t value) { put("i32", value); }
  void add(double value) { put("f64", value, !std::isnan(value)); }
  void add(std::string_view text);

 private:
  friend class Columns;
  template <class T>
  void put(std::string_view type, T value, bool any = true) {
    type_ = type;
    any_ |= any;
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }

  bool has_texts() const { return !ends_.empty(); }

  std::string_view type_;
  bool any_ = false;  // Whether a row has something: a number, a letter.
  std::string bytes_;
  std::vector<uint32_t> ends_;  // Of texts.
};

class Columns {
 public:
  explicit Columns(std::size_t rows) : rows_(rows) {}

  // As many cells as there are rows. A column in which no row has anything is left out: before
  // rows are measured these are most.
  void add(std::string_view name, ColumnCells cells);

  // The whole table, once. `members` stand in its header before the rest: "\"rev\":3,".
  std::string finish(std::string_view members);

 private:
  struct Column {
    std::string name;
    ColumnCells cells;
    std::size_t offset = 0, bytes = 0;
  };

  std::size_t rows_;
  std::vector<Column> columns_;
  std::size_t bytes_ = 0;
};

}  // namespace tensordiff::serve
