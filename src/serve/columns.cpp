#include "serve/columns.h"

namespace tensordiff::serve {

void ColumnCells::add(std::string_view text) {
  type_ = "str";
  any_ |= !text.empty();
  bytes_ += text;
  ends_.push_back(static_cast<uint32_t>(bytes_.size()));
}

void Columns::add(std::string_view name, ColumnCells cells) {
  if (!cells.any_) return;
  Column column{std::string(name), std::move(cells), bytes_, 0};
  column.bytes = column.cells.bytes_.size();
  if (column.cells.has_texts()) column.bytes += (rows_ + 1) * sizeof(uint32_t);
  bytes_ += (column.bytes + 7) / 8 * 8;
  columns_.push_back(std::move(column));
}

std::string Columns::finish(std::string_view members) {
  JsonWriter json;
  json.begin_object().member("n", uint64_t{rows_}).key("columns").begin_array();
  for (const Column& column : columns_)
    json.begin_object()
        .member("name", column.name)
        .member("type", column.cells.type_)
        .member("offset", uint64_t{column.offset})
        .member("bytes", uint64_t{column.bytes})
        .end_object();
  std::string header = json.end_array().end_object().take();
  header.insert(1, members);
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const auto size = static_cast<uint32_t>(header.size());
  std::string out;
  out.reserve(8 + header.size() + bytes_);
  out += "TDBC";
  out.append(reinterpret_cast<const char*>(&size), sizeof size);
  out += header;
  for (Column& column : columns_) {
    if (column.cells.has_texts()) {
      out.append(sizeof(uint32_t), '\0');  // Texts begin where the last one ends.
      out.append(reinterpret_cast<const char*>(column.cells.ends_.data()),
                 column.cells.ends_.size() * sizeof(uint32_t));
    }
    out += column.cells.bytes_;
    out.resize((out.size() + 7) / 8 * 8, '\0');
    column.cells = {};  // There may be very many rows.
  }
  return out;
}

}  // namespace tensordiff::serve
