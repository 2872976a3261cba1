#include "serve/query.h"

#include <charconv>

#include "base/text.h"

namespace tensordiff::serve {
namespace {

std::optional<unsigned> hex_byte(std::string_view digits) {
  unsigned value = 0;
  if (digits.size() != 2) return std::nullopt;
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + 2, value, 16);
  if (fault != std::errc() || end != digits.data() + 2) return std::nullopt;
  return value;
}

}  // namespace

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = text[i] == '%' ? hex_byte(text.substr(i + 1, 2)) : std::nullopt;
    if (!byte || *byte == 0) {
      out += text[i];
      continue;
    }
    out += static_cast<char>(*byte);
    i += 2;
  }
  return out;
}

std::optional<uint64_t> parse_digits(std::string_view text) {
  uint64_t value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || end != text.data() + text.size() || !all_digits(text))
    return std::nullopt;
  return value;
}

Query::Query(std::string_view text) {
  for (const std::string_view word : split(text, '&')) {
    if (word.empty()) continue;
    const std::size_t equals = std::min(word.find('='), word.size());
    std::string value(word.substr(std::min(equals + 1, word.size())));
    for (char& letter : value)
      if (letter == '+') letter = ' ';
    words_.push_back({percent_decoded(word.substr(0, equals)), percent_decoded(value)});
  }
}

std::optional<std::string_view> Query::find(std::string_view name) const {
  for (auto word = words_.rbegin(); word != words_.rend(); ++word)
    if (word->name == name) return word->value;
  return std::nullopt;
}

std::string_view Query::text(std::string_view name, std::string_view fallback) const {
  return find(name).value_or(fallback);
}

Result<uint64_t> Query::count(std::string_view name, uint64_t fallback, uint64_t most) const {
  const std::optional<std::string_view> text = find(name);
  if (!text || text->empty()) return fallback;
  const std::optional<uint64_t> value = parse_digits(*text);
  if (!value || *value == 0 || *value > most)
    return Error("{}: '{}' is not a number from 1 to {}", name, printable(*text), most);
  return *value;
}

Result<std::optional<double>> Query::number(std::string_view name) const {
  const std::optional<std::string_view> text = find(name);
  if (!text || text->empty()) return std::optional<double>();
  double value = 0;
  const auto [end, fault] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (fault != std::errc() || end != text->data() + text->size())
    return Error("{}: '{}' is not a number", name, printable(*text));
  return std::optional(value);
}

}  // namespace tensordiff::serve
