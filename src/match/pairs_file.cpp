#include "match/pairs_file.h"

#include "base/json.h"
#include "base/text.h"

namespace tensordiff {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

Result<NamePair> pair_of(const Json& a, const Json& b) {
  if (!a.is_string() || !b.is_string()) return Error("a pair is not of two names");
  return NamePair{std::string(a.string()), std::string(b.string())};
}

Result<std::vector<NamePair>> from_json(const Json& json) {
  std::vector<NamePair> pairs;
  for (const Json::Member& member : json.object())
    pairs.push_back(TRY(pair_of(Json(member.key), member.value)));
  for (const Json& item : json.array()) {
    if (item.is_array() && item.array().size() != 2) return Error("a pair is not of two names");
    pairs.push_back(
        TRY(item.is_array() ? pair_of(item[0], item[1]) : pair_of(item["a"], item["b"])));
  }
  return pairs;
}

// A name at the start of the text, which is shortened by it.
Result<std::string> take_name(std::string_view& text, std::string_view end) {
  if (text.starts_with('"') || text.starts_with('\'')) {
    std::size_t close = 1;
    while (close < text.size() && text[close] != text[0]) close += text[close] == '\\' ? 2 : 1;
    if (close >= text.size()) return Error("a quote is not closed");
    const std::string_view quoted = text.substr(0, close + 1);
    text.remove_prefix(close + 1);
    if (quoted[0] == '\'') return std::string(quoted.substr(1, quoted.size() - 2));
    const Json json = TRY(Json::parse(quoted));
    return std::string(json.string());
  }
  const std::size_t stop = std::min(text.find(end), text.size());
  const std::string name(trimmed(text.substr(0, stop)));
  text.remove_prefix(stop);
  return name;
}

Result<NamePair> from_line(std::string_view line) {
  NamePair pair;
  pair.a = TRY(take_name(line, ": "));
  line = trimmed(line);
  if (!line.starts_with(':')) return Error("not of the form 'name in A: name in B'");
  line = trimmed(line.substr(1));
  pair.b = TRY(take_name(line, " #"));
  line = trimmed(line);
  if (pair.a.empty() || pair.b.empty()) return Error("a name is empty");
  if (!line.empty() && line[0] != '#') return Error("something follows the second name");
  return pair;
}

}  // namespace

Result<std::vector<NamePair>> parse_pairs(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && (text[first] == '{' || text[first] == '['))
    return from_json(TRY(Json::parse(text)));
  std::vector<NamePair> pairs;
  std::size_t number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++number;
    line = trimmed(line);
    if (line.starts_with("- ")) line = trimmed(line.substr(2));
    if (line.empty() || line[0] == '#' || line == "---") continue;
    pairs.push_back(TRY(from_line(line).in(fmt::format("line {}", number))));
  }
  return pairs;
}

std::string pairs_text(const std::vector<NamePair>& pairs) {
  std::string text = "# Pairs of tensors, 'name in A: name in B'. Read with --pairs.\n";
  for (const NamePair& pair : pairs) {
    JsonWriter a, b;
    a.value(pair.a);
    b.value(pair.b);
    text += fmt::format("{}: {}\n", a.text(), b.text());
  }
  return text;
}

}  // namespace tensordiff
