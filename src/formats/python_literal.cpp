#include "formats/python_literal.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace tensordiff {
namespace {

constexpr int kDepthMax = 16;  // Structured dtypes nest a few levels.

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<PythonLiteral> document() {
    PythonLiteral literal = TRY(parse(0));
    if (peek() != '\0' || at_ != text_.size()) return fail("text after the end");
    return literal;
  }

 private:
  Error fail(std::string_view what) const { return Error("{} at byte {}", what, at_); }

  // The next character that is not space; NUL at the end.
  char peek() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool accept(char c) {
    if (peek() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }

  Result<PythonLiteral> parse(int depth) {
    if (depth > kDepthMax) return fail("nested too deep");
    switch (peek()) {
      case '{':
        return dict(depth);
      case '(':
        return sequence(')', depth);
      case '[':
        return sequence(']', depth);
      case '\'':
      case '"':
        return PythonLiteral{TRY(string())};
      case 'T':
        return word("True", PythonLiteral{true});
      case 'F':
        return word("False", PythonLiteral{false});
      case 'N':
        return word("None", PythonLiteral{});
      default:
        return number();
    }
  }

  Result<PythonLiteral> word(std::string_view spelling, PythonLiteral meaning) {
    if (!text_.substr(at_).starts_with(spelling)) return fail("unknown word");
    at_ += spelling.size();
    return meaning;
  }

  Result<PythonLiteral> number() {
    int64_t number = 0;
    const char* begin = text_.data() + at_;
    const auto [end, fault] = std::from_chars(begin, text_.data() + text_.size(), number);
    if (fault != std::errc()) return fail("a value expected");
    at_ += static_cast<std::size_t>(end - begin);
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2 wrote long integers so.
    return PythonLiteral{number};
  }

  Result<std::string> string() {
    const char quote = text_[at_++];
    std::string out;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\\' && ++at_ == text_.size()) break;
      out += text_[at_++];
    }
    if (at_ == text_.size()) return fail("string without end");
    ++at_;
    return out;
  }

  Result<PythonLiteral> sequence(char close, int depth) {
    ++at_;
    PythonLiteral::Sequence sequence;
    while (!accept(close)) {
      sequence.items.push_back(TRY(parse(depth + 1)));
      if (!accept(',') && peek() != close) return fail("',' expected");
    }
    return PythonLiteral{std::move(sequence)};
  }

  Result<PythonLiteral> dict(int depth) {
    ++at_;
    PythonLiteral::Dict dict;
    while (!accept('}')) {
      if (peek() != '\'' && peek() != '"') return fail("a key expected");
      std::string key = TRY(string());
      if (std::ranges::count(dict.keys, key) > 0) return fail("the same key twice");
      if (!accept(':')) return fail("':' expected");
      dict.keys.push_back(std::move(key));
      dict.values.push_back(TRY(parse(depth + 1)));
      if (!accept(',') && peek() != '}') return fail("',' expected");
    }
    return PythonLiteral{std::move(dict)};
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

const PythonLiteral* PythonLiteral::find(std::string_view key) const {
  const Dict* dict = as<Dict>();
  if (!dict) return nullptr;
  const auto found = std::ranges::find(dict->keys, key);
  return found == dict->keys.end() ? nullptr : &dict->values[found - dict->keys.begin()];
}

Result<PythonLiteral> parse_python_literal(std::string_view text) {
  return Parser(text).document();
}

}  // namespace tensordiff
