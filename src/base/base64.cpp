#include "base/base64.h"

#include <array>
#include <cstdint>

namespace tensordiff {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<int8_t, 256> digit_values() {
  std::array<int8_t, 256> values = {};
  values.fill(-1);
  for (std::size_t i = 0; i < kDigits.size(); ++i)
    values[static_cast<unsigned char>(kDigits[i])] = static_cast<int8_t>(i);
  return values;
}
constexpr std::array<int8_t, 256> kValues = digit_values();

}  // namespace

std::string base64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      const bool there = at + i < bytes.size();
      group = group << 8 | (there ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      const bool there = at + i <= bytes.size();
      out += there ? kDigits[group >> (18 - 6 * i) & 63] : '=';
    }
  }
  return out;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  const std::string_view digits = text.substr(0, text.size() - padding);
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  uint32_t group = 0;
  unsigned bits = 0;
  for (const char digit : digits) {
    const int8_t value = kValues[static_cast<unsigned char>(digit)];
    if (value < 0) return std::nullopt;
    group = group << 6 | static_cast<uint32_t>(value);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(group >> bits & 255);
  }
  // What is left over of the last digit stands for nothing.
  if ((group & ((1U << bits) - 1)) != 0) return std::nullopt;
  return bytes;
}

}  // namespace tensordiff
