// The opcodes that push numbers and strings, and those of the memo: what is read from the pickle
// itself. The text forms are those of protocol 0: one line each.

#include <charconv>

#include "base/text.h"
#include "formats/pickle/machine.h"

namespace tensordiff::pickle {
namespace {

template <int kBytes>
uint64_t unsigned_number(ByteCursor& cursor) {
  if constexpr (kBytes == 1) return cursor.u8();
  if constexpr (kBytes == 2) return cursor.u16();
  if constexpr (kBytes == 4) return cursor.u32();
  if constexpr (kBytes == 8) return cursor.u64();
}

template <class T>
bool parse(std::string_view text, T& value) {
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  return fault == std::errc() && end == text.data() + text.size();
}

// The number of `digits` digits of a base from `at` on; nothing when there are fewer.
std::optional<uint32_t> escaped_number(std::string_view text, std::size_t at, std::size_t digits,
                                       int base) {
  uint32_t value = 0;
  const std::string_view part = at <= text.size() ? text.substr(at, digits) : std::string_view();
  const auto [end, fault] = std::from_chars(part.data(), part.data() + part.size(), value, base);
  if (part.size() != digits || fault != std::errc() || end != part.data() + digits)
    return std::nullopt;
  return value;
}

bool is_octal(char c) { return c >= '0' && c <= '7'; }

// A Python string literal between its quotes.
Result<std::string> unescape(std::string_view text) {
  constexpr std::string_view kNames = "\\'\"abfnrtv";
  constexpr std::string_view kMeanings = "\\'\"\a\b\f\n\r\t\v";
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\\') {
      out += text[at];
      continue;
    }
    if (++at == text.size()) return Error("ends in a lone backslash");
    const std::size_t which = kNames.find(text[at]);
    if (which != std::string_view::npos) {
      out += kMeanings[which];
    } else if (text[at] == 'x') {
      const std::optional<uint32_t> value = escaped_number(text, at + 1, 2, 16);
      if (!value) return Error("\\x without two hex digits");
      out += static_cast<char>(*value);
      at += 2;
    } else if (is_octal(text[at])) {
      uint32_t value = 0;
      std::size_t digits = 0;
      for (; digits < 3 && at + digits < text.size() && is_octal(text[at + digits]); ++digits)
        value = value * 8 + static_cast<uint32_t>(text[at + digits] - '0');
      out += static_cast<char>(value);
      at += digits - 1;
    } else {
      out += '\\';
      out += text[at];
    }
  }
  return out;
}

// Python's raw-unicode-escape: latin-1, where \uXXXX and \UXXXXXXXX are characters unless the
// backslash is itself escaped.
Result<std::string> decode_raw_unicode(std::string_view text) {
  std::string out;
  bool escaped = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char next = at + 1 < text.size() ? text[at + 1] : '\0';
    if (text[at] != '\\' || escaped || (next != 'u' && next != 'U')) {
      escaped = text[at] == '\\' && !escaped;
      append_utf8(static_cast<uint8_t>(text[at]), out);
      continue;
    }
    const std::size_t digits = next == 'u' ? 4 : 8;
    const std::optional<uint32_t> point = escaped_number(text, at + 2, digits, 16);
    if (!point || *point > 0x10ffff) return Error("\\{} without a character", next);
    append_utf8(*point, out);
    at += 1 + digits;
  }
  return out;
}

}  // namespace

Machine::Step Machine::float_binary() {
  const uint64_t bits = __builtin_bswap64(cursor_.u64());
  return push(graph_.add(Kind::real, {}, static_cast<int64_t>(bits)));
}

template <int kBytes>
Machine::Step Machine::int_binary() {
  const uint64_t bits = unsigned_number<kBytes>(cursor_);
  // Only the four-byte form has a sign.
  const int64_t value = kBytes == 4 ? static_cast<int32_t>(bits) : static_cast<int64_t>(bits);
  return push(graph_.add(Kind::integer, {}, value));
}
template Machine::Step Machine::int_binary<1>();
template Machine::Step Machine::int_binary<2>();
template Machine::Step Machine::int_binary<4>();

template <int kLengthBytes>
Machine::Step Machine::long_binary() {
  const ByteView bytes = cursor_.take(unsigned_number<kLengthBytes>(cursor_));
  if (bytes.size() > 8) return push(graph_.add(Kind::big_integer, as_text(bytes)));
  uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    value |= std::to_integer<uint64_t>(bytes[i]) << 8 * i;
  const bool negative = !bytes.empty() && (bytes.back() & std::byte{0x80}) != std::byte{0};
  if (negative && bytes.size() < 8) value |= ~uint64_t{0} << 8 * bytes.size();
  return push(graph_.add(Kind::integer, {}, static_cast<int64_t>(value)));
}
template Machine::Step Machine::long_binary<1>();
template Machine::Step Machine::long_binary<4>();

template <Kind kKind, int kLengthBytes>
Machine::Step Machine::string_binary() {
  const ByteView bytes = cursor_.take(unsigned_number<kLengthBytes>(cursor_));
  if (kKind == Kind::bytes) payload_bytes_ += bytes.size();
  return push(graph_.add(kKind, as_text(bytes)));
}
template Machine::Step Machine::string_binary<Kind::bytes, 1>();
template Machine::Step Machine::string_binary<Kind::bytes, 4>();
template Machine::Step Machine::string_binary<Kind::bytes, 8>();
template Machine::Step Machine::string_binary<Kind::text, 1>();
template Machine::Step Machine::string_binary<Kind::text, 4>();
template Machine::Step Machine::string_binary<Kind::text, 8>();

// Up to the next newline, which is left out.
Result<std::string_view> Machine::line() {
  const std::string_view rest = as_text(cursor_.rest());
  const std::size_t length = rest.find('\n');
  if (length == std::string_view::npos) return cursor_.fail(), Error("a line without end");
  cursor_.skip(length + 1);
  return rest.substr(0, length);
}

// A number too large for 64 bits stays text: it is no tensor, but it is no fault either.
Machine::Step Machine::push_decimal(std::string_view digits) {
  int64_t value = 0;
  if (parse(digits, value)) return push(graph_.add(Kind::integer, {}, value));
  const std::string_view magnitude = digits.substr(digits.starts_with('-') ? 1 : 0);
  if (!all_digits(magnitude)) return Error("'{}' is not a number", printable(digits, 40));
  return push(graph_.add(Kind::big_integer, digits));
}

Machine::Step Machine::int_text() {
  const std::string_view digits = TRY(line());
  if (digits == "00") return push(kFalse);
  if (digits == "01") return push(kTrue);
  return push_decimal(digits);
}

Machine::Step Machine::long_text() {
  std::string_view digits = TRY(line());
  if (digits.ends_with('L')) digits.remove_suffix(1);
  return push_decimal(digits);
}

Machine::Step Machine::float_text() {
  const std::string_view digits = TRY(line());
  double value = 0;
  if (!parse(digits, value)) return Error("'{}' is not a number", printable(digits, 40));
  return push(graph_.add(Kind::real, {}, std::bit_cast<int64_t>(value)));
}

Machine::Step Machine::string_text() {
  const std::string_view quoted = TRY(line());
  const bool whole = quoted.size() >= 2 && quoted.front() == quoted.back() &&
                     (quoted.front() == '\'' || quoted.front() == '"');
  if (!whole) return Error("a string without quotes");
  const std::string_view kept = graph_.keep(TRY(unescape(quoted.substr(1, quoted.size() - 2))));
  return push(graph_.add(Kind::bytes, kept));
}

Machine::Step Machine::unicode_text() {
  const std::string_view raw = TRY(line());
  const std::string_view kept = graph_.keep(TRY(decode_raw_unicode(raw)));
  return push(graph_.add(Kind::text, kept));
}

template <int kBytes>
Machine::Step Machine::get() {
  return recall(unsigned_number<kBytes>(cursor_));
}
template Machine::Step Machine::get<1>();
template Machine::Step Machine::get<4>();

template <int kBytes>
Machine::Step Machine::put() {
  return remember(unsigned_number<kBytes>(cursor_));
}
template Machine::Step Machine::put<1>();
template Machine::Step Machine::put<4>();

Machine::Step Machine::get_text() {
  uint64_t index = 0;
  if (!parse(TRY(line()), index)) return Error("a memo index that is not a number");
  return recall(index);
}

Machine::Step Machine::put_text() {
  uint64_t index = 0;
  if (!parse(TRY(line()), index)) return Error("a memo index that is not a number");
  return remember(index);
}

}  // namespace tensordiff::pickle
