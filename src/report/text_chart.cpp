#include "report/text_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace tensordiff {
namespace {

constexpr std::size_t kBarsMax = 64;  // More make no picture; the JSON has them all.
constexpr std::size_t kBarColumns = 40;

std::string left_padded(std::string text, std::size_t width) {
  const std::size_t has = columns(text);
  return (has < width ? std::string(width - has, ' ') : "") + text;
}

std::size_t widest(const std::vector<std::string>& names, std::size_t most) {
  std::size_t width = 1;
  for (const std::string& name : names) width = std::max(width, columns(name));
  return std::min(width, most);
}

// Eighths of a column: "██▌".
std::string bar(double share, std::size_t length) {
  constexpr std::string_view kPart[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = static_cast<std::size_t>(
      std::lround(std::clamp(share, 0.0, 1.0) * static_cast<double>(8 * length)));
  std::string out;
  for (std::size_t i = 0; i < eighths / 8; ++i) out += "█";
  return out + std::string(kPart[eighths % 8]);
}

std::string bars(const Chart& chart, const Style& style, std::size_t width) {
  double most = 0;
  for (const double value : chart.values)
    if (std::isfinite(value)) most = std::max(most, value);
  const std::size_t names = widest(chart.x, width / 3);
  const std::size_t room = width > names + 16 ? width - names - 16 : 8;
  const std::size_t count = std::min({kBarsMax, chart.x.size(), chart.values.size()});
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    const double value = chart.values[i];
    const bool known = std::isfinite(value);
    out += fmt::format("    {}  {} {}\n", left_padded(shorten(printable(chart.x[i]), names), names),
                       known && most > 0 ? bar(value / most, std::min(room, kBarColumns)) : "",
                       style(Tone::dim, known ? fmt::format("{:.3g}", value) : "unknown"));
  }
  if (chart.x.size() > count) out += fmt::format("    … {} more\n", chart.x.size() - count);
  return out;
}

// From light to dark in four steps: the least value in the chart to the largest.
std::string heat(const Chart& chart, const Style& style, std::size_t width) {
  constexpr std::string_view kShades[] = {"·", "░", "▒", "▓", "█"};
  double least = 0, most = 0;
  for (const double value : chart.values) {
    if (!std::isfinite(value)) continue;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  const std::size_t names = widest(chart.y, width / 3);
  const std::size_t room = width > names + 6 ? width - names - 6 : 1;
  const std::size_t across = std::min(chart.x.size(), room);
  const std::size_t wide = 2 * across <= room ? 2 : 1;
  std::string out;
  for (std::size_t row = 0; row < chart.y.size(); ++row) {
    out += "    " + left_padded(shorten(printable(chart.y[row]), names), names) + "  ";
    for (std::size_t column = 0; column < across; ++column) {
      const double value = chart.values[row * chart.x.size() + column];
      const double share = most > least ? (value - least) / (most - least) : 0;
      const std::string_view shade =
          !std::isfinite(value) ? "?" : kShades[static_cast<std::size_t>(std::lround(4 * share))];
      for (std::size_t i = 0; i < wide; ++i) out += shade;
    }
    out += "\n";
  }
  const std::string more =
      across < chart.x.size() ? fmt::format("; {} of {} columns", across, chart.x.size()) : "";
  return out + "    " + style(Tone::dim, fmt::format("· {:.3g}  █ {:.3g}{}", least, most, more)) +
         "\n";
}

}  // namespace

std::string chart_text(const Chart& chart, const Style& style, std::size_t width) {
  if (chart.x.empty() || chart.y.empty() || chart.values.empty()) return "";
  std::string out = "  " + style(Tone::dim, chart.title.empty() ? chart.name : chart.title) + "\n";
  return out + (chart.kind == Chart::Kind::heat_map ? heat(chart, style, width)
                                                    : bars(chart, style, width));
}

std::string wrapped(std::string_view text, std::size_t width, std::string_view indent,
                    std::size_t used) {
  std::string out, line;
  std::size_t room = width > used ? width - used : 1;
  for (const std::string_view word : split(text, ' ')) {
    if (!line.empty() && columns(line) + 1 + columns(word) > room) {
      out += line + "\n" + std::string(indent);
      line.clear();
      room = width > columns(indent) ? width - columns(indent) : 1;
    }
    line += (line.empty() ? "" : " ") + std::string(word);
  }
  return out + line;
}

}  // namespace tensordiff
