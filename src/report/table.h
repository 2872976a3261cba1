// A table for the terminal that fits the width it is given.
//
// Where it is too wide, the columns that matter least are left out, and then the first column is
// shortened. A row may carry remarks, which stand below it; rows may be grouped under headings.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "report/style.h"

namespace tensordiff {

struct Column {
  std::string_view title;
  enum class Side { left, right } side = Side::left;
  int drop = 0;        // The highest goes first when there is no room; 0 always stays.
  bool names = false;  // Of tensors: shortened so that the layer and the last part stay.
};

struct Cell {
  std::string text;
  Tone tone = Tone::plain;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // As many cells as columns.
  void add(std::vector<Cell> cells, std::vector<std::string> remarks = {});
  // A line of its own above the rows that follow, such as what they have in common.
  void add_heading(std::string text);
  bool empty() const { return rows_.empty(); }
  std::string render(const Style& style, std::size_t width) const;

 private:
  struct Row {
    std::vector<Cell> cells;  // None, if it is a heading.
    std::vector<std::string> remarks;
    std::string heading;
  };
  std::size_t least_of_first(std::size_t width) const;
  // The width of each column, 0 for one that is left out.
  std::vector<std::size_t> fit(std::size_t width) const;
  std::string line(const std::vector<Cell>& cells, const std::vector<std::size_t>& widths,
                   const Style& style) const;

  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

}  // namespace tensordiff
