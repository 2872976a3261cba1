#include "cli/fold.h"

#include <algorithm>
#include <vector>

#include "base/text.h"

namespace tensordiff {
namespace {

constexpr std::size_t kLabelColumns = 11;  // As report/answer_text.cpp writes labels.
constexpr std::size_t kIndent = 2;         // Below a line without a label.

// Columns on a terminal: bytes that continue a character and escapes for colours take none.
std::size_t columns_of(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      while (i < text.size() && text[i] != 'm') ++i;
      continue;
    }
    count += (static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80;
  }
  return count;
}

// Where the text begins behind a label and its gap.
std::size_t indent_of(std::string_view line) {
  const std::size_t gap = line.starts_with(' ') ? 0 : line.find("  ");
  if (gap == std::string_view::npos) return kIndent;
  const std::size_t end = line.find_first_not_of(' ', gap);
  return end == std::string_view::npos ? kIndent : columns_of(line.substr(0, end));
}

void fold_line(std::string_view line, std::size_t width, std::string& out) {
  const std::size_t first = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t indent = indent_of(line);
  if ((first != 0 && first != kLabelColumns) || columns_of(line) <= width || indent >= width) {
    out += line;
    return;
  }
  std::string now;
  for (std::string_view rest = line; !rest.empty();) {
    const std::size_t start = std::min(rest.find_first_not_of(' '), rest.size());
    const std::size_t end = std::min(rest.find(' ', start), rest.size());
    const std::string_view word = rest.substr(0, end);  // With the spaces before it.
    const bool is_first = now.empty() || columns_of(now) <= indent;
    if (!is_first && columns_of(now) + columns_of(word) > width) {
      out += now + "\n";
      now = std::string(indent, ' ') + std::string(word.substr(start));
    } else {
      now += word;
    }
    rest.remove_prefix(end);
  }
  out += now;
}

}  // namespace

std::string folded(std::string_view text, std::size_t width) {
  const std::vector<std::string_view> lines = split(text, '\n');
  std::string out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    fold_line(lines[i], width, out);
    if (i + 1 < lines.size()) out += '\n';
  }
  return out;
}

}  // namespace tensordiff
