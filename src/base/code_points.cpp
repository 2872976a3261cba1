#include "base/code_points.h"

namespace tensordiff {
namespace {

bool continues(std::string_view text, std::size_t at) {
  return at < text.size() && (static_cast<uint8_t>(text[at]) & 0xc0) == 0x80;
}

struct Range {
  uint32_t first, last;
};

// By the Unicode Character Database: controls (Cc), what has no shape of its own (the default
// ignorable ones, but for those that join letters of living scripts into one), line and paragraph
// separators, and marks of direction.
constexpr Range kHarmful[] = {
    {0x00, 0x1f},     {0x7f, 0x9f},       {0xad, 0xad},       {0x61c, 0x61c},     {0x115f, 0x1160},
    {0x17b4, 0x17b5}, {0x180b, 0x180f},   {0x200b, 0x200f},   {0x2028, 0x202e},   {0x2060, 0x206f},
    {0x2800, 0x2800}, {0x3164, 0x3164},   {0xfdd0, 0xfdef},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},
    {0xfff0, 0xfffb}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
};

}  // namespace

uint32_t decode_utf8(std::string_view text, std::size_t at, std::size_t& length) {
  const auto byte = [&](std::size_t i) { return static_cast<uint8_t>(text[at + i]); };
  length = 1;
  if (byte(0) < 0x80) return byte(0);
  const std::size_t size = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4) return kBrokenUtf8;
  uint32_t point = byte(0) & (0x7fU >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if (!continues(text, at + i)) return kBrokenUtf8;
    point = point << 6 | (byte(i) & 0x3f);
  }
  const uint32_t least = size == 4 ? 0x10000 : size == 3 ? 0x800 : 0x80;
  if (point < least || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return kBrokenUtf8;
  length = size;
  return point;
}

bool is_harmful(uint32_t point) {
  if ((point & 0xfffe) == 0xfffe) return true;  // The last two of each plane are no characters.
  for (const Range& range : kHarmful)
    if (point >= range.first && point <= range.last) return true;
  return false;
}

}  // namespace tensordiff
