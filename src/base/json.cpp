#include "base/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_set>

#include "base/code_points.h"
#include "base/text.h"

namespace tensordiff {
namespace {

// Recursive descent over one text; the depth limit keeps the recursion small.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Json> document() {
    Json value = TRY(this->value(0));
    skip_space();
    if (at_ != text_.size()) return fail("text after the end");
    return value;
  }

 private:
  Error fail(std::string_view what) const { return Error("{} at byte {} of the JSON", what, at_); }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }

  void skip_space() {
    while (at_ < text_.size() &&
           std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
      ++at_;
  }

  Result<Json> value(int depth) {
    if (depth > kJsonDepthMax) return fail("nested too deep");
    skip_space();
    switch (peek()) {
      case '{':
        return object(depth);
      case '[':
        return array(depth);
      case '"':
        return Json(TRY(string()));
      case 't':
        return word("true", Json(true));
      case 'f':
        return word("false", Json(false));
      case 'n':
        return word("null", Json());
      default:
        return number();
    }
  }

  Result<Json> word(std::string_view spelling, Json meaning) {
    if (text_.substr(at_, spelling.size()) != spelling) return fail("unknown word");
    at_ += spelling.size();
    return meaning;
  }

  Result<Json> object(int depth) {
    ++at_;
    Json::Object members;
    skip_space();
    if (accept('}')) return Json(std::move(members));
    do {
      skip_space();
      if (peek() != '"') return fail("a key expected");
      std::string key = TRY(string());
      skip_space();
      if (!accept(':')) return fail("':' expected");
      Json value = TRY(this->value(depth + 1));
      members.push_back({std::move(key), std::move(value)});
      skip_space();
    } while (accept(','));
    if (!accept('}')) return fail("',' or '}' expected");
    if (const std::string* twice = repeated_key(members))
      return fail(fmt::format("key '{}' twice in the object that ends", printable(*twice, 80)));
    return Json(std::move(members));
  }

  // Most objects are small; a set of their keys would cost more than looking at each pair.
  static const std::string* repeated_key(const Json::Object& members) {
    constexpr std::size_t kSmall = 8;
    if (members.size() <= kSmall) {
      for (std::size_t i = 1; i < members.size(); ++i)
        for (std::size_t j = 0; j < i; ++j)
          if (members[i].key == members[j].key) return &members[i].key;
      return nullptr;
    }
    std::unordered_set<std::string_view> seen;
    seen.reserve(members.size());
    for (const Json::Member& member : members)
      if (!seen.insert(member.key).second) return &member.key;
    return nullptr;
  }

  Result<Json> array(int depth) {
    ++at_;
    Json::Array items;
    skip_space();
    if (accept(']')) return Json(std::move(items));
    do {
      items.push_back(TRY(value(depth + 1)));
      skip_space();
    } while (accept(','));
    if (!accept(']')) return fail("',' or ']' expected");
    return Json(std::move(items));
  }

  Result<std::string> string() {
    ++at_;
    std::string out;
    for (;;) {
      // Plain characters come in long runs.
      std::size_t end = at_;
      while (end < text_.size() && is_plain(text_[end])) ++end;
      out.append(text_.substr(at_, end - at_));
      at_ = end;
      if (peek() != '\\') break;
      ++at_;
      TRY(escape(out));
    }
    if (at_ < text_.size() && static_cast<unsigned char>(text_[at_]) < 0x20)
      return fail("control character in a string");
    if (!accept('"')) return fail("string without end");
    if (!is_utf8(out)) return fail("string that is not UTF-8");
    return out;
  }

  static bool is_plain(char c) {
    return c != '"' && c != '\\' && static_cast<unsigned char>(c) >= 0x20;
  }

  Result<void> escape(std::string& out) {
    constexpr std::string_view kNames = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    const char name = peek();
    ++at_;
    if (const std::size_t which = kNames.find(name); name && which != std::string_view::npos) {
      out += kMeanings[which];
      return {};
    }
    if (name != 'u') return fail("unknown escape");
    uint32_t point = TRY(hex4());
    if (point >= 0xd800 && point < 0xdc00) {
      if (!accept('\\') || !accept('u')) return fail("lone surrogate");
      const uint32_t low = TRY(hex4());
      if (low < 0xdc00 || low > 0xdfff) return fail("lone surrogate");
      point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
    } else if (point >= 0xdc00 && point < 0xe000) {
      return fail("lone surrogate");
    }
    append_utf8(point, out);
    return {};
  }

  Result<uint32_t> hex4() {
    const std::string_view digits = text_.substr(at_, 4);
    uint32_t point = 0;
    const auto [end, fault] =
        std::from_chars(digits.data(), digits.data() + digits.size(), point, 16);
    if (digits.size() != 4 || fault != std::errc() || end != digits.data() + 4)
      return fail("four hex digits expected");
    at_ += 4;
    return point;
  }

  bool digits() {
    const std::size_t begin = at_;
    while (peek() >= '0' && peek() <= '9') ++at_;
    return at_ > begin;
  }

  Result<Json> number() {
    const std::size_t begin = at_;
    const bool negative = accept('-');
    const bool zero = peek() == '0';
    const std::size_t first_digit = at_;
    if (!digits()) return fail("a value expected");
    if (zero && at_ - first_digit > 1) return fail("leading zero");
    bool integer = true;
    if (accept('.')) {
      integer = false;
      if (!digits()) return fail("digits expected");
    }
    if (accept('e') || accept('E')) {
      integer = false;
      if (!accept('+')) accept('-');
      if (!digits()) return fail("digits expected");
    }
    return convert(text_.substr(begin, at_ - begin), integer, negative);
  }

  Result<Json> convert(std::string_view text, bool integer, bool negative) const {
    const char* end = text.data() + text.size();
    if (integer && negative) {
      int64_t value = 0;
      if (std::from_chars(text.data(), end, value).ec == std::errc()) return Json(value);
    } else if (integer) {
      uint64_t value = 0;
      if (std::from_chars(text.data(), end, value).ec == std::errc()) return Json(value);
    }
    double value = 0;
    std::from_chars(text.data(), end, value);  // Too large gives 0 and too small too: both are odd.
    return Json(value);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

const Json kNull;

}  // namespace

Result<Json> Json::parse(std::string_view text) { return Parser(text).document(); }

std::optional<bool> Json::boolean() const {
  const bool* flag = std::get_if<bool>(&value_);
  return flag ? std::optional(*flag) : std::nullopt;
}

std::optional<uint64_t> Json::u64() const {
  const uint64_t* number = std::get_if<uint64_t>(&value_);
  return number ? std::optional(*number) : std::nullopt;
}

std::optional<int64_t> Json::i64() const {
  if (const int64_t* number = std::get_if<int64_t>(&value_)) return *number;
  const uint64_t* number = std::get_if<uint64_t>(&value_);
  if (!number || *number > INT64_MAX) return std::nullopt;
  return static_cast<int64_t>(*number);
}

std::optional<double> Json::number() const {
  if (const double* number = std::get_if<double>(&value_)) return *number;
  if (const uint64_t* number = std::get_if<uint64_t>(&value_)) return static_cast<double>(*number);
  if (const int64_t* number = std::get_if<int64_t>(&value_)) return static_cast<double>(*number);
  return std::nullopt;
}

std::string_view Json::string() const {
  const std::string* text = std::get_if<std::string>(&value_);
  return text ? std::string_view(*text) : std::string_view();
}

std::span<const Json> Json::array() const {
  const Array* items = std::get_if<Array>(&value_);
  return items ? std::span<const Json>(*items) : std::span<const Json>();
}

std::span<const Json::Member> Json::object() const {
  const Object* members = std::get_if<Object>(&value_);
  return members ? std::span<const Member>(*members) : std::span<const Member>();
}

const Json& Json::operator[](std::string_view key) const {
  const auto members = object();
  const auto found = std::ranges::find(members, key, &Member::key);
  return found == members.end() ? kNull : found->value;
}

const Json& Json::operator[](std::size_t index) const {
  return index < array().size() ? array()[index] : kNull;
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  text_ += bracket;
  ++depth_;
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  --depth_;
  if (!first_) new_line();
  text_ += bracket;
  first_ = false;
  return *this;
}

void JsonWriter::new_line() {
  if (style_ == Style::compact) return;
  text_ += '\n';
  text_.append(static_cast<std::size_t>(depth_) * 2, ' ');
}

void JsonWriter::separate() {
  if (!after_key_ && depth_ > 0) {
    if (!first_) text_ += ',';
    new_line();
  }
  after_key_ = false;
  first_ = false;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  value(name);
  text_ += style_ == Style::compact ? ":" : ": ";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::null() {
  separate();
  text_ += "null";
  return *this;
}

JsonWriter& JsonWriter::value(bool flag) {
  separate();
  text_ += flag ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::value(double number) {
  if (!std::isfinite(number)) return value(std::string_view(number_text(number)));
  return print(number);
}

JsonWriter& JsonWriter::value(int64_t number) { return print(number); }
JsonWriter& JsonWriter::value(uint64_t number) { return print(number); }

template <class Number>
JsonWriter& JsonWriter::print(Number number) {
  separate();
  char digits[40];
  text_.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
  return *this;
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  separate();
  text_ += json;
  return *this;
}

// Nearly all text is plain; what is not is looked at again.
JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  text_ += '"';
  const auto is_plain = [](char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; };
  if (std::ranges::all_of(text, is_plain))
    text_ += text;
  else
    append_escaped(is_utf8(text) ? std::string(text) : valid_utf8(text));
  text_ += '"';
  return *this;
}

// What a terminal or a stricter reader stumbles over is escaped; the value is the same.
void JsonWriter::append_escaped(std::string_view text) {
  std::size_t length = 0;
  for (std::size_t at = 0; at < text.size(); at += length) {
    const uint32_t point = decode_utf8(text, at, length);
    if (point == '"' || point == '\\') {
      text_ += '\\';
      text_ += static_cast<char>(point);
    } else if (point == '\n') {
      text_ += "\\n";
    } else if (!is_harmful(point)) {
      text_ += text.substr(at, length);
    } else if (point < 0x10000) {
      text_ += fmt::format("\\u{:04x}", point);
    } else {
      const uint32_t pair = point - 0x10000;
      text_ += fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + (pair >> 10), 0xdc00 + (pair & 0x3ff));
    }
  }
}

std::string number_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  char text[40];
  const auto [end, fault] = std::to_chars(text, text + sizeof text, number);
  return std::string(text, fault == std::errc() ? end : text);
}

}  // namespace tensordiff
