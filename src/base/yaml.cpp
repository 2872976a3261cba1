#include "base/yaml.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/suggest.h"
#include "base/text.h"

namespace tensordiff {
namespace {

struct Line {
  std::size_t number;
  std::size_t indent;
  std::string_view text;  // Without indentation, comment and space at its end. Never empty.
};

Error at_line(std::size_t line, std::string_view what) { return Error("line {}: {}", line, what); }

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

// Where the quoted text that starts at `at` ends: just after its closing quote, or npos.
std::size_t quote_end(std::string_view text, std::size_t at) {
  const char quote = text[at];
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\')
      ++i;
    else if (text[i] == quote && quote == '\'' && text.substr(i + 1).starts_with('\''))
      ++i;
    else if (text[i] == quote)
      return i + 1;
  }
  return std::string_view::npos;
}

// Only at the start of a word: the apostrophe of "it's" opens nothing.
bool opens_quote(std::string_view text, std::size_t at) {
  if (text[at] != '"' && text[at] != '\'') return false;
  return at == 0 || std::string_view(" [{,:").find(text[at - 1]) != std::string_view::npos;
}

// The first place outside quotes where `stop(text, i)` holds; the length of the text for none.
template <class Stop>
std::size_t find_outside_quotes(std::string_view text, Stop stop) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (opens_quote(text, i)) {
      const std::size_t end = quote_end(text, i);
      if (end == std::string_view::npos) return text.size();
      i = end - 1;
    } else if (stop(text, i)) {
      return i;
    }
  }
  return text.size();
}

bool starts_comment(std::string_view text, std::size_t i) {
  return text[i] == '#' && (i == 0 || text[i - 1] == ' ');
}

bool ends_key(std::string_view text, std::size_t i) {
  return text[i] == ':' && (i + 1 == text.size() || text[i + 1] == ' ');
}

bool is_item(std::string_view text) { return text == "-" || text.starts_with("- "); }

Result<std::vector<Line>> lines_of(std::string_view text) {
  std::vector<Line> lines;
  std::size_t number = 0;
  for (std::string_view raw : split(text, '\n')) {
    ++number;
    if (raw.ends_with('\r')) raw.remove_suffix(1);
    raw = raw.substr(0, find_outside_quotes(raw, starts_comment));
    if (raw.find('\t') != std::string_view::npos)
      return at_line(number, "a tab; indent with spaces");
    const std::string_view content = trimmed(raw);
    if (content.empty() || (content == "---" && lines.empty())) continue;
    if (content == "---" || content == "..." || content.starts_with('%'))
      return at_line(number, "only one document, without directives, is read");
    lines.push_back({number, raw.find_first_not_of(' '), content});
  }
  return lines;
}

// Text in quotes, as a whole.
Result<std::string> unquoted(std::string_view text, std::size_t line) {
  if (quote_end(text, 0) != text.size()) return at_line(line, "a quote that is not closed");
  if (text[0] == '"') {
    const Result<Json> json = Json::parse(text);
    if (!json.ok()) return at_line(line, json.error().message());
    return std::string(json.value().string());
  }
  std::string out;
  for (std::size_t i = 1; i + 1 < text.size(); ++i) {
    out += text[i];
    if (text[i] == '\'') ++i;
  }
  return out;
}

Result<std::string> plain_or_quoted(std::string_view text, std::size_t line) {
  if (text.starts_with('"') || text.starts_with('\'')) return unquoted(text, line);
  if (text.find_first_of("&*!|>@`%") == 0)
    return at_line(line, fmt::format("'{}' has a meaning in YAML that is not read here; put the "
                                     "text in quotes",
                                     text[0]));
  return std::string(text);
}

// Nobody writes more; looking for a second one of the same name takes the square of it.
constexpr std::size_t kKeysMax = 10'000;

Result<void> add_member(Yaml& map, std::string key, std::size_t line, Yaml value) {
  if (map.members.size() == kKeysMax) return at_line(line, "more than 10,000 keys in one map");
  if (map.find(key)) return at_line(line, fmt::format("'{}' is there twice", printable(key)));
  map.members.push_back({std::move(key), line, std::move(value)});
  return {};
}

// One line of brackets, or plain text.
class Flow {
 public:
  Flow(std::string_view text, std::size_t line) : rest_(text), line_(line) {}

  Result<Yaml> whole(int depth) {
    Yaml node = TRY(value(depth, false));
    if (!trimmed(rest_).empty()) return at_line(line_, "something follows the value");
    return node;
  }

 private:
  Result<Yaml> value(int depth, bool inside) {
    if (depth > kYamlDepthMax) return at_line(line_, "nested too deep");
    rest_ = trimmed(rest_);
    if (rest_.starts_with('[')) return list(depth);
    if (rest_.starts_with('{')) return map(depth);
    const auto stops = [&](std::string_view text, std::size_t i) {
      return inside && (text[i] == ',' || text[i] == ']' || text[i] == '}');
    };
    const std::string_view word = take(find_outside_quotes(rest_, stops));
    Yaml node;
    node.line = line_;
    if (word.empty() || word == "~" || word == "null") return node;
    node.kind = Yaml::Kind::text;
    node.text = TRY(plain_or_quoted(word, line_));
    return node;
  }

  Result<Yaml> list(int depth) {
    Yaml node;
    node.kind = Yaml::Kind::list;
    node.line = line_;
    rest_.remove_prefix(1);
    while (!closes(']')) {
      node.items.push_back(TRY(value(depth + 1, true)));
      TRY(separator(']'));
    }
    return node;
  }

  Result<Yaml> map(int depth) {
    Yaml node;
    node.kind = Yaml::Kind::map;
    node.line = line_;
    rest_.remove_prefix(1);
    while (!closes('}')) {
      rest_ = trimmed(rest_);
      const std::size_t colon = find_outside_quotes(rest_, ends_key);
      if (colon == rest_.size()) return at_line(line_, "a key without ': ' after it");
      std::string key = TRY(plain_or_quoted(take(colon), line_));
      rest_.remove_prefix(1);
      Yaml item = TRY(value(depth + 1, true));
      TRY(add_member(node, std::move(key), line_, std::move(item)));
      TRY(separator('}'));
    }
    return node;
  }

  std::string_view take(std::size_t count) {
    const std::string_view front = trimmed(rest_.substr(0, count));
    rest_.remove_prefix(count);
    return front;
  }

  bool closes(char bracket) {
    rest_ = trimmed(rest_);
    if (!rest_.starts_with(bracket)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  // A comma, or the bracket that ends it all, which stays.
  Result<void> separator(char bracket) {
    rest_ = trimmed(rest_);
    if (rest_.starts_with(bracket)) return {};
    if (!rest_.starts_with(',')) return at_line(line_, "a bracket that is not closed on its line");
    rest_.remove_prefix(1);
    return {};
  }

  std::string_view rest_;
  std::size_t line_;
};

class Block {
 public:
  explicit Block(std::vector<Line> lines) : lines_(std::move(lines)) {}

  Result<Yaml> whole() {
    if (lines_.empty()) return Yaml();
    Yaml node = TRY(value(0));
    if (!done()) return at_line(line().number, "indented differently from what is before it");
    return node;
  }

 private:
  bool done() const { return next_ == lines_.size(); }
  const Line& line() const { return lines_[next_]; }
  bool continues(std::size_t indent) const { return !done() && line().indent == indent; }

  // What starts at the next line, with the indentation it has.
  Result<Yaml> value(int depth) {
    if (depth > kYamlDepthMax) return at_line(line().number, "nested too deep");
    if (is_item(line().text)) return list(depth);
    const bool bracket = line().text.find_first_of("[{") == 0;
    if (!bracket && find_outside_quotes(line().text, ends_key) < line().text.size())
      return map(depth);
    Flow flow(line().text, line().number);
    ++next_;
    return flow.whole(depth);
  }

  Result<Yaml> list(int depth) {
    Yaml node;
    node.kind = Yaml::Kind::list;
    node.line = line().number;
    const std::size_t indent = line().indent;
    while (continues(indent) && is_item(line().text)) {
      const std::string_view rest = trimmed(line().text.substr(1));
      if (rest.empty()) {
        node.items.push_back(TRY(below(depth, indent)));
        continue;
      }
      // The rest of the line starts a value of its own, indented by what is before it.
      lines_[next_].indent += line().text.size() - rest.size();
      lines_[next_].text = rest;
      node.items.push_back(TRY(value(depth + 1)));
    }
    return node;
  }

  Result<Yaml> map(int depth) {
    Yaml node;
    node.kind = Yaml::Kind::map;
    node.line = line().number;
    const std::size_t indent = line().indent;
    while (continues(indent) && !is_item(line().text)) {
      const Line here = line();
      const std::size_t colon = find_outside_quotes(here.text, ends_key);
      if (colon == here.text.size()) return at_line(here.number, "not of the form 'key: value'");
      std::string key = TRY(plain_or_quoted(trimmed(here.text.substr(0, colon)), here.number));
      const std::string_view rest = trimmed(here.text.substr(colon + 1));
      Yaml item;
      if (rest.empty()) {
        item = TRY(below(depth, indent));
      } else {
        ++next_;
        item = TRY(Flow(rest, here.number).whole(depth + 1));
      }
      TRY(add_member(node, std::move(key), here.number, std::move(item)));
    }
    return node;
  }

  // The value on the lines below this one; null where they are indented no further. A list may
  // stand as far left as its key.
  Result<Yaml> below(int depth, std::size_t indent) {
    Yaml null;
    null.line = line().number;
    const bool of_key = !is_item(line().text);
    ++next_;
    const bool deeper = !done() && line().indent > indent;
    const bool list_of_key = of_key && continues(indent) && is_item(line().text);
    if (!deeper && !list_of_key) return null;
    return value(depth + 1);
  }

  std::vector<Line> lines_;
  std::size_t next_ = 0;
};

}  // namespace

Result<Yaml> Yaml::parse(std::string_view text) {
  if (!is_utf8(text)) return Error("not UTF-8 text");
  return Block(TRY(lines_of(text))).whole();
}

const Yaml* Yaml::find(std::string_view key) const {
  const auto found = std::ranges::find(members, key, &Member::key);
  return found == members.end() ? nullptr : &found->value;
}

Error Yaml::wrong(std::string_view what) const { return at_line(line, what); }

Result<void> Yaml::only(std::span<const std::string_view> keys) const {
  if (!is_map()) return wrong("keys and values are expected here");
  for (const Member& member : members)
    if (std::ranges::find(keys, member.key) == keys.end())
      return at_line(member.line, fmt::format("unknown key '{}'{}", printable(member.key),
                                              did_you_mean(member.key, keys)));
  return {};
}

}  // namespace tensordiff
