#include "report/style.h"

#include <algorithm>

namespace tensordiff {
namespace {

bool starts_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

// The byte at which character number `count` starts.
std::size_t byte_of(std::string_view text, std::size_t count) {
  std::size_t at = 0;
  for (; at < text.size(); ++at)
    if (starts_character(text[at]) && count-- == 0) break;
  return at;
}

}  // namespace

Tone tone_of(Status status) {
  switch (status) {
    case Status::identical:
    case Status::equal:
    case Status::close:
      return Tone::good;
    case Status::same_shape:
      return Tone::plain;
    case Status::different:
      return Tone::bad;
    case Status::incomparable:
    case Status::error:
      return Tone::trouble;
  }
  return Tone::plain;
}

Tone tone_of(Conclusion verdict) {
  switch (verdict) {
    case Conclusion::same:
    case Conclusion::close:
      return Tone::good;
    case Conclusion::shapes_match:  // Not green: what was not looked at is not good.
    case Conclusion::known:
      return Tone::bold;
    case Conclusion::different:
      return Tone::bad;
    case Conclusion::trouble:
      break;
  }
  return Tone::trouble;
}

std::string Style::operator()(Tone tone, std::string_view text) const {
  if (!color_ || tone == Tone::plain || text.empty()) return std::string(text);
  const auto paint = [&](std::string_view code) {
    return "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m";
  };
  switch (tone) {
    case Tone::bold:
      return paint("1");
    case Tone::dim:
      return paint("2");
    case Tone::good:
      return paint("32");
    case Tone::bad:
      return paint("31");
    default:
      return paint("33");
  }
}

std::size_t columns(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, starts_character));
}

std::string shorten(std::string_view text, std::size_t width) {
  const std::size_t length = columns(text);
  if (length <= width) return std::string(text);
  if (width < 3) return std::string(text.substr(0, byte_of(text, width)));
  const std::size_t tail = width / 2;
  const std::size_t head = width - 1 - tail;
  return std::string(text.substr(0, byte_of(text, head))) + "…" +
         std::string(text.substr(byte_of(text, length - tail)));
}

}  // namespace tensordiff
