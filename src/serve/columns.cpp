#include "serve/columns.h"

namespace tensordiff::serve {

void Columns::put_bytes(std::string_view name, std::string_view type, std::string_view bytes) {
  columns_.push_back({std::string(name), type, data_.size(), bytes.size()});
  data_ += bytes;
  data_.resize((data_.size() + 7) / 8 * 8);
}

void Columns::add(std::string_view name, const std::vector<std::string>& values) {
  std::vector<uint32_t> offsets = {0};
  std::string text;
  for (const std::string& value : values) {
    text += value;
    offsets.push_back(static_cast<uint32_t>(text.size()));
  }
  std::string bytes(reinterpret_cast<const char*>(offsets.data()),
                    offsets.size() * sizeof(uint32_t));
  put_bytes(name, "str", bytes += text);
}

std::string Columns::finish(std::string_view members) const {
  JsonWriter json;
  json.begin_object().member("n", uint64_t{rows_}).key("columns").begin_array();
  for (const Column& column : columns_)
    json.begin_object()
        .member("name", column.name)
        .member("type", column.type)
        .member("offset", uint64_t{column.offset})
        .member("bytes", uint64_t{column.bytes})
        .end_object();
  std::string header = json.end_array().end_object().take();
  header.insert(1, members);
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const auto size = static_cast<uint32_t>(header.size());
  std::string out = "TDBC";
  out.append(reinterpret_cast<const char*>(&size), sizeof size);
  return out + header + data_;
}

}  // namespace tensordiff::serve
