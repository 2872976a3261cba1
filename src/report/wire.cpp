#include "report/wire.h"

namespace tensordiff::wire {

std::string camel(std::string_view name) {
  std::string out;
  bool raise = false;
  for (const char c : name) {
    if (c != '_') out += raise && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    raise = c == '_';
  }
  return out;
}

void write(JsonWriter& json, const Cell& cell) {
  const auto list = [&](const auto& items) {
    json.begin_array();
    for (const auto& item : items) json.value(item);
    json.end_array();
  };
  std::visit(
      [&](const auto& value) {
        using V = std::remove_cvref_t<decltype(value)>;
        if constexpr (std::same_as<V, std::monostate>)
          json.null();
        else if constexpr (requires {
                             value.data();
                             value.size();
                           } &&
                           !std::convertible_to<V, std::string_view>)
          list(value);
        else
          json.value(value);
      },
      cell);
}

}  // namespace tensordiff::wire
