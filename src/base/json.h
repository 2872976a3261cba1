// JSON: a strict reader for untrusted text and a writer for our output.
//
// The reader refuses what the standard refuses, and also duplicate keys, broken UTF-8, lone
// surrogates and nesting deeper than kJsonDepthMax. Integers keep all 64 bits. Looking up a key
// that is not there, or a value of another kind, gives null or an empty value, so that a chain like
// index["weight_map"][name].string() is safe; ask is_...() where the difference matters.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace tensordiff {

inline constexpr int kJsonDepthMax = 100;

class Json {
 public:
  struct Member;
  using Array = std::vector<Json>;
  using Object = std::vector<Member>;  // In the order of the text.

  static Result<Json> parse(std::string_view text);

  Json();
  explicit Json(bool value);
  explicit Json(int64_t value);
  explicit Json(uint64_t value);
  explicit Json(double value);
  explicit Json(std::string value);
  explicit Json(Array value);
  explicit Json(Object value);

  bool is_null() const { return value_.index() == 0; }
  bool is_object() const { return std::holds_alternative<Object>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }

  std::optional<bool> boolean() const;
  std::optional<uint64_t> u64() const;  // Nothing for a negative number, 1.0 or 1e3.
  std::optional<int64_t> i64() const;
  std::optional<double> number() const;  // Any number.
  std::string_view string() const;       // Empty when it is none.
  std::span<const Json> array() const;
  std::span<const Member> object() const;

  const Json& operator[](std::string_view key) const;
  const Json& operator[](std::size_t index) const;

 private:
  // uint64_t holds non-negative integers, int64_t negative ones.
  std::variant<std::monostate, bool, uint64_t, int64_t, double, std::string, Array, Object> value_;
};

struct Json::Member {
  std::string key;
  Json value;
};

// Only here, since clang builds no variant of an Object before it has seen what a Member is.
inline Json::Json() = default;
inline Json::Json(bool value) : value_(value) {}
inline Json::Json(int64_t value) : value_(value) {}
inline Json::Json(uint64_t value) : value_(value) {}
inline Json::Json(double value) : value_(value) {}
inline Json::Json(std::string value) : value_(std::move(value)) {}
inline Json::Json(Array value) : value_(std::move(value)) {}
inline Json::Json(Object value) : value_(std::move(value)) {}

// Writes JSON as it goes, with keys in the order they are given. Numbers that are not finite become
// the strings "nan", "inf" and "-inf"; an empty optional becomes null; broken UTF-8 is replaced.
class JsonWriter {
 public:
  enum class Style { compact, indented };
  explicit JsonWriter(Style style = Style::compact) : style_(style) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);

  JsonWriter& null();
  JsonWriter& value(bool flag);
  JsonWriter& value(double number);
  JsonWriter& value(int64_t number);
  JsonWriter& value(uint64_t number);
  JsonWriter& value(int number) { return value(static_cast<int64_t>(number)); }
  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(const std::string& text) { return value(std::string_view(text)); }
  template <class T>
  JsonWriter& value(const std::optional<T>& maybe) {
    return maybe ? value(*maybe) : null();
  }
  template <class T>
  JsonWriter& value(const std::vector<T>& items) {
    begin_array();
    for (const T& item : items) value(item);
    return end_array();
  }
  template <class T>
  JsonWriter& member(std::string_view name, const T& item) {
    return key(name).value(item);
  }

  // A value that is JSON already.
  JsonWriter& raw(std::string_view json);

  void reserve(std::size_t bytes) { text_.reserve(bytes); }
  const std::string& text() const { return text_; }
  std::string take() { return std::move(text_); }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  template <class Number>
  JsonWriter& print(Number number);
  void append_escaped(std::string_view text);
  void separate();
  void new_line();

  Style style_;
  std::string text_;
  int depth_ = 0;
  bool first_ = true;  // Nothing written yet in the innermost bracket.
  bool after_key_ = false;
};

// A number as JSON and our other outputs print it: the shortest text that reads back the same.
std::string number_text(double number);

}  // namespace tensordiff
