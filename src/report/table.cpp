#include "report/table.h"

#include <algorithm>
#include <cassert>

#include "report/short_name.h"

namespace tensordiff {
namespace {

constexpr std::size_t kMargin = 2;           // Before the first column, and between columns.
constexpr std::size_t kFirstColumnMin = 12;  // Shorter than this a name says nothing.

std::size_t total(const std::vector<std::size_t>& widths) {
  std::size_t sum = 0;
  for (const std::size_t width : widths) sum += width ? width + kMargin : 0;
  return sum;
}

}  // namespace

void Table::add(std::vector<Cell> cells, std::vector<std::string> remarks) {
  assert(cells.size() == columns_.size());
  rows_.push_back({std::move(cells), std::move(remarks), {}});
}

void Table::add_heading(std::string text) { rows_.push_back({{}, {}, std::move(text)}); }

// Room in which each name keeps its layer and its last part, but never more than half of the width:
// one endless name must not cost the others their columns.
std::size_t Table::least_of_first(std::size_t width) const {
  std::size_t least = kFirstColumnMin;
  if (columns_[0].names)
    for (const Row& row : rows_)
      if (!row.cells.empty()) least = std::max(least, least_columns(row.cells[0].text));
  return std::max(kFirstColumnMin, std::min(least, width / 2));
}

std::vector<std::size_t> Table::fit(std::size_t width) const {
  const std::size_t least = least_of_first(width);
  std::vector<std::size_t> widths(columns_.size());
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    for (const Row& row : rows_)
      if (!row.cells.empty()) widths[i] = std::max(widths[i], columns(row.cells[i].text));
    // A column without a single entry is left out.
    if (widths[i] > 0) widths[i] = std::max(widths[i], columns(columns_[i].title));
  }
  while (total(widths) > width) {
    std::size_t drop = 0;
    for (std::size_t i = 0; i < columns_.size(); ++i)
      if (widths[i] && columns_[i].drop > columns_[drop].drop) drop = i;
    if (columns_[drop].drop == 0) break;
    // Before a column goes, the names may give way to it a little.
    const std::size_t excess = total(widths) - width;
    if (widths[0] >= excess + std::max(least, 2 * kFirstColumnMin)) break;
    widths[drop] = 0;
  }
  if (const std::size_t sum = total(widths); sum > width) {
    const std::size_t excess = sum - width;
    widths[0] = widths[0] > excess + kFirstColumnMin ? widths[0] - excess
                                                     : std::min(widths[0], kFirstColumnMin);
  }
  return widths;
}

std::string Table::line(const std::vector<Cell>& cells, const std::vector<std::size_t>& widths,
                        const Style& style) const {
  std::string out;
  std::size_t gap = 0;  // Spaces owed: written only once more text follows.
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (widths[i] == 0) continue;
    const std::string text = columns_[i].names ? shorten_name(cells[i].text, widths[i])
                                               : shorten(cells[i].text, widths[i]);
    const std::size_t slack = widths[i] - columns(text);
    const bool right = columns_[i].side == Column::Side::right;
    gap += kMargin + (right ? slack : 0);
    if (!text.empty()) {
      out += std::string(gap, ' ') + style(cells[i].tone, text);
      gap = 0;
    }
    gap += right ? 0 : slack;
  }
  return out + "\n";
}

std::string Table::render(const Style& style, std::size_t width) const {
  const std::vector<std::size_t> widths = fit(width);
  std::vector<Cell> titles;
  for (const Column& column : columns_) titles.push_back({std::string(column.title), Tone::dim});
  std::string out = line(titles, widths, style);
  for (const Row& row : rows_) {
    out += row.cells.empty() ? row.heading + "\n" : line(row.cells, widths, style);
    for (const std::string& remark : row.remarks)
      out += std::string(2 * kMargin, ' ') + style(Tone::dim, "└ " + remark) + "\n";
  }
  return out;
}

}  // namespace tensordiff
