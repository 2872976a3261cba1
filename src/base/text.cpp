#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/code_points.h"

namespace tensordiff {

std::string printable(std::string_view name, std::size_t length_max) {
  std::string out;
  std::size_t length = 0;
  for (std::size_t at = 0; at < name.size(); at += length) {
    if (out.size() >= length_max) return out + "…";
    const uint32_t point = decode_utf8(name, at, length);
    if (point == kBrokenUtf8) {
      out += fmt::format("\\x{:02x}", static_cast<uint8_t>(name[at]));
    } else if (is_harmful(point)) {
      out += point < 0x100     ? fmt::format("\\x{:02x}", point)
             : point < 0x10000 ? fmt::format("\\u{:04x}", point)
                               : fmt::format("\\U{:08x}", point);
    } else {
      out += name.substr(at, length);
    }
  }
  return out;
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  std::size_t length = 0;
  for (std::size_t at = 0; at < text.size(); at += length) {
    const bool broken = decode_utf8(text, at, length) == kBrokenUtf8;
    out += broken ? std::string_view("\xef\xbf\xbd") : text.substr(at, length);
  }
  return out;
}

bool is_utf8(std::string_view text) {
  if (std::ranges::all_of(text, [](char c) { return static_cast<uint8_t>(c) < 0x80; })) return true;
  std::size_t length = 0;
  for (std::size_t at = 0; at < text.size(); at += length)
    if (decode_utf8(text, at, length) == kBrokenUtf8) return false;
  return true;
}

void append_utf8(uint32_t code_point, std::string& out) {
  const auto put = [&](uint32_t byte) { out += static_cast<char>(byte); };
  if (code_point < 0x80) return put(code_point);
  if (code_point < 0x800) {
    put(0xc0 | code_point >> 6);
  } else {
    if (code_point < 0x10000) {
      put(0xe0 | code_point >> 12);
    } else {
      put(0xf0 | code_point >> 18);
      put(0x80 | (code_point >> 12 & 0x3f));
    }
    put(0x80 | (code_point >> 6 & 0x3f));
  }
  put(0x80 | (code_point & 0x3f));
}

std::string human_bytes(uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  constexpr std::string_view kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  return fmt::format("{:.{}f} {}", value, value < 10 ? 1 : 0, kUnits[unit]);
}

std::string human_count(uint64_t count) {
  std::string digits = fmt::format("{}", count);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

std::string human_number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return fmt::format("{:.3g}", value);
}

std::string shape_text(const std::vector<uint64_t>& shape) {
  std::string out = "[";
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    out += fmt::format("{}{}", axis ? ", " : "", shape[axis]);
  return out + "]";
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

bool all_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace tensordiff
