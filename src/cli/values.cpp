#include "cli/values.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <string>

#include "base/suggest.h"
#include "base/text.h"

namespace tensordiff {
namespace {

// 2^64 as a double: the first that does not fit.
constexpr double kTooLarge = 18446744073709551616.0;

struct Unit {
  std::string_view name;
  double bytes;
};
constexpr Unit kUnits[] = {
    {"", 1},        {"b", 1},          {"k", 1e3},      {"kb", 1e3},     {"m", 1e6},
    {"mb", 1e6},    {"g", 1e9},        {"gb", 1e9},     {"t", 1e12},     {"tb", 1e12},
    {"kib", 1024.}, {"mib", 1048576.}, {"gib", 0x1p30}, {"tib", 0x1p40},
};

// A number at the front of the text; `rest` is what follows it.
Result<double> leading_number(std::string_view text, std::string_view& rest) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, fault] = std::from_chars(text.data(), end, value);
  if (fault != std::errc()) return Error("'{}' is not a number", printable(text, 80));
  rest = {stop, static_cast<std::size_t>(end - stop)};
  return value;
}

}  // namespace

Result<uint64_t> parse_size(std::string_view text) {
  std::string_view rest;
  const double number = TRY(leading_number(text, rest));
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  for (const Unit& unit : kUnits) {
    if (lower(rest) != unit.name) continue;
    const double bytes = number * unit.bytes;
    if (!(bytes >= 0 && bytes < kTooLarge)) break;
    return static_cast<uint64_t>(bytes);
  }
  return Error("'{}' is not a size such as 500MB or 2GiB", printable(text, 80));
}

Result<uint64_t> parse_count(std::string_view text) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, fault] = std::from_chars(text.data(), end, value);
  if (fault != std::errc() || stop != end)
    return Error("'{}' is not a whole number", printable(text, 80));
  return value;
}

Result<double> parse_number(std::string_view text) {
  std::string_view rest;
  const double value = TRY(leading_number(text, rest));
  if (!rest.empty()) return Error("'{}' is not a number", printable(text, 80));
  return value;
}

Result<double> parse_tolerance(std::string_view text) {
  const double value = TRY(parse_number(text));
  if (!std::isfinite(value) || value < 0)
    return Error("'{}' is not a tolerance: it must be finite and not negative",
                 printable(text, 80));
  return value;
}

Result<std::size_t> parse_word(std::string_view word, std::span<const std::string_view> words) {
  for (std::size_t i = 0; i < words.size(); ++i)
    if (word == words[i]) return i;
  const std::string_view meant = nearest_word(word, words);
  return Error("'{}' is not one of {}{}", printable(word, 80), fmt::join(words, ", "),
               meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant));
}

Result<void> set_text_or_json(Settings& settings, std::string_view name) {
  constexpr std::string_view kNames[] = {"text", "json"};
  settings.output = kNames[TRY(parse_word(name, kNames))];
  return {};
}

}  // namespace tensordiff
