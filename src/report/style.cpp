#include "report/style.h"

#include <algorithm>

#include "base/text.h"

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

// The parts of a name that a reader needs: the layer with the word before it, and the last part,
// with the one before it where it only says which parameter it is.
struct NameParts {
  std::string_view layer, last;
};

NameParts parts_of(std::string_view name) {
  const std::vector<std::string_view> words = split(name, '.');
  const auto from = [&](std::size_t first, std::size_t end) {
    const char* begin = words[first].data();
    return std::string_view(begin, words[end].data() + words[end].size() - begin);
  };
  NameParts parts;
  const std::size_t last = words.size() - 1;
  const bool parameter = words[last] == "weight" || words[last] == "bias";
  const std::size_t tail = parameter && last > 0 ? last - 1 : last;
  parts.last = from(tail, last);
  for (std::size_t i = 0; i < tail; ++i)
    if (all_digits(words[i])) {
      parts.layer = from(i > 0 ? i - 1 : i, i);
      break;
    }
  return parts;
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

std::string shorten_name(std::string_view name, std::size_t width) {
  if (columns(name) <= width) return std::string(name);
  // The mark of the first divergence is never cut.
  constexpr std::string_view kMark = "▶ ";
  if (name.starts_with(kMark) && width > 2)
    return std::string(kMark) + shorten_name(name.substr(kMark.size()), width - 2);
  if (const std::size_t arrow = name.find(" → "); arrow != std::string_view::npos && width > 12) {
    const std::size_t half = (width - 3) / 2;
    const std::string a = shorten_name(name.substr(0, arrow), half);
    return a + " → " + shorten_name(name.substr(arrow + 5), width - 3 - columns(a));
  }
  const auto [layer, last] = parts_of(name);
  const std::string both = "…" + std::string(layer) + ".…" + std::string(last);
  if (!layer.empty() && columns(both) <= width) {
    // What room is left goes to the parts in front of the last one.
    const std::size_t room = width - columns(both);
    const std::size_t at = name.size() - last.size();
    std::size_t start = byte_of(name, columns(name.substr(0, at)) - std::min(room, at));
    start = std::max<std::size_t>(start, static_cast<std::size_t>(layer.end() - name.data()) + 1);
    if (start < at && name[start] == '.') ++start;
    return "…" + std::string(layer) + ".…" + std::string(name.substr(start));
  }
  return shorten(name, width);
}

}  // namespace tensordiff
