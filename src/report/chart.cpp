#include "report/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "report/style.h"
#include "report/wording.h"

namespace tensordiff {
namespace {

constexpr int kWidth = 960;
constexpr std::size_t kDotsMax = 3000;  // More cannot be told apart; the largest of each bin stay.
constexpr std::size_t kTicksMax = 24;
constexpr double kZeroBelow = 20;         // How far below a logarithmic axis its zeros stand.
constexpr std::size_t kNameColumns = 34;  // Of a name beside a bar.

std::string escaped(std::string_view text, std::size_t width = std::string::npos) {
  const std::string clean = printable(text, 1000);
  return html_escape(width == std::string::npos ? clean : shorten(clean, width));
}

std::string label(double x, double y, std::string_view anchor, std::string_view text) {
  return fmt::format(R"(<text class="label" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>)", x,
                     y, anchor, text);
}

std::string line(std::string_view look, double x1, double y1, double x2, double y2) {
  return fmt::format(R"(<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>)", look,
                     x1, y1, x2, y2);
}

struct Area {
  double x, y, width, height;
};

std::string titled(std::string_view title) {
  return title.empty() ? "" : fmt::format("<title>{}</title>", title);
}

std::string rect(std::string_view look, const Area& area, std::string_view title = "") {
  return fmt::format(
      R"(<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}">{}</rect>)", look,
      area.x, area.y, area.width, area.height, titled(title));
}

std::string circle(std::string_view look, double x, double y, double radius,
                   std::string_view title = "") {
  return fmt::format(R"(<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="{}">{}</circle>)", look, x, y,
                     radius, titled(title));
}

bool is_positive(const std::optional<double>& value) {
  return value && std::isfinite(*value) && *value > 0;
}

// The vertical axis: logarithmic over whole decades, or linear.
class Axis {
 public:
  enum class Scale { decades, linear };

  Axis(Scale scale, const std::vector<std::optional<double>>& values, double top, double bottom)
      : scale_(scale), top_(top), bottom_(bottom) {
    bool first = true;
    for (const std::optional<double>& value : values) {
      if (!value || !std::isfinite(*value) || (is_log() && !is_positive(value))) continue;
      const double place = is_log() ? std::log10(*value) : *value;
      low_ = first ? place : std::min(low_, place);
      high_ = first ? place : std::max(high_, place);
      first = false;
    }
    if (is_log()) {
      low_ = std::floor(low_);
      high_ = std::max(std::ceil(high_), low_ + 1);
    } else if (!(high_ > low_)) {
      low_ -= 1;
      high_ += 1;
    }
  }

  double y(double value) const {
    if (std::isnan(value) || value == std::numeric_limits<double>::infinity()) return top_ - 8;
    if (is_log() && !(value > 0)) return bottom_ + kZeroBelow;
    const double place = is_log() ? std::log10(value) : std::max(value, low_);
    return bottom_ - (place - low_) / (high_ - low_) * (bottom_ - top_);
  }

  // Lines across the picture, at most seven.
  std::string grid(double left, double right) const {
    std::string out;
    const double range = high_ - low_;
    const double step = is_log() ? std::max(1.0, std::ceil(range / 6)) : range / 4;
    for (double place = low_; place <= high_ + step / 1e6; place += step) {
      const double at = y(is_log() ? std::pow(10, place) : place);
      out += line("grid", left, at, right, at);
      out += label(left - 6, at + 4, "end",
                   is_log() ? fmt::format("1e{:.0f}", place) : short_number(place));
    }
    return out;
  }

 private:
  bool is_log() const { return scale_ == Scale::decades; }

  Scale scale_;
  double low_ = 0, high_ = 1;
  double top_, bottom_;
};

// Decades where all values are positive and far apart.
Axis::Scale fitting(const std::vector<std::optional<double>>& values) {
  constexpr double kFarApart = 30;
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (const std::optional<double>& value : values) {
    if (!value || !std::isfinite(*value)) continue;
    if (!is_positive(value)) return Axis::Scale::linear;
    least = std::min(least, *value);
    most = std::max(most, *value);
  }
  return most > kFarApart * least ? Axis::Scale::decades : Axis::Scale::linear;
}

// Of more points than can be drawn, the largest of each bin, in order.
std::vector<const ChartPoint*> thinned(const std::vector<ChartPoint>& points) {
  const std::size_t bin = points.size() / kDotsMax + 1;
  std::vector<const ChartPoint*> kept;
  for (std::size_t i = 0; i < points.size(); i += bin) {
    const ChartPoint* best = &points[i];
    for (std::size_t j = i; j < std::min(i + bin, points.size()) && !best->marked; ++j)
      if (points[j].marked || points[j].value.value_or(-1) > best->value.value_or(-1))
        best = &points[j];
    kept.push_back(best);
  }
  return kept;
}

std::string group_ticks(const std::vector<const ChartPoint*>& points, double left, double step,
                        double bottom) {
  std::vector<std::size_t> starts;
  for (std::size_t i = 0; i < points.size(); ++i)
    if (!points[i]->group.empty() && (i == 0 || points[i]->group != points[i - 1]->group))
      starts.push_back(i);
  std::string out;
  const std::size_t stride = starts.size() / kTicksMax + 1;
  for (std::size_t i = 0; i < starts.size(); i += stride) {
    const double x = left + step * static_cast<double>(starts[i]);
    out += line("grid", x, 20, x, bottom + 26);
    out += label(x + 3, bottom + 40, "start", escaped(points[starts[i]]->group, 14));
  }
  return out;
}

std::string dot(const ChartPoint& point, double x, double y) {
  const std::string title = fmt::format("{}: {}", escaped(point.label), short_number(*point.value));
  return (point.marked ? circle("mark", x, y, 9) : "") +
         circle(name_of(point.look), x, y, 3.5, title);
}

// Which of the ten steps of the scale a value is on.
class HeatScale {
 public:
  explicit HeatScale(const HeatMap& map) : decades_(map.decades) {
    low_ = decades_ ? -9 : std::numeric_limits<double>::infinity();
    high_ = decades_ ? 1 : -low_;
    for (const std::optional<double>& value : map.values) {
      if (decades_ || !value || !std::isfinite(*value)) continue;
      low_ = std::min(low_, *value);
      high_ = std::max(high_, *value);
    }
  }

  std::string look(double value) const {
    if (!std::isfinite(value)) return "h9";
    const double place = !decades_ ? value : value > 0 ? std::log10(value) : low_;
    const double share = high_ > low_ ? (place - low_) / (high_ - low_) : 0;
    return fmt::format("h{}", static_cast<int>(std::clamp(10 * share, 0.0, 9.0)));
  }

  std::string legend(double left, double top) const {
    std::string out;
    for (int step = 0; step <= 9; ++step) {
      const double x = left + 46 * step;
      out += rect(fmt::format("h{}", step), {x, top, 45, 10});
      const double from = low_ + (high_ - low_) * step / 10;
      const std::string text =
          decades_ ? fmt::format("{:.0e}", std::pow(10, from)) : short_number(from);
      out += label(x + 1, top + 22, "start", step == 0 && decades_ ? "0" : text);
    }
    return out;
  }

 private:
  bool decades_;
  double low_, high_;
};

}  // namespace

std::string html_escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

doc::Chart dot_chart(std::string title, const std::vector<ChartPoint>& all) {
  constexpr double kLeft = 56, kTop = 24, kBottom = 220, kHeight = 268;
  const std::vector<const ChartPoint*> points = thinned(all);
  std::vector<std::optional<double>> values;
  for (const ChartPoint* point : points) values.push_back(point->value);
  const Axis axis(Axis::Scale::decades, values, kTop, kBottom);
  const double step =
      (kWidth - kLeft - 12) / std::max<double>(1, static_cast<double>(points.size()));

  std::string body = axis.grid(kLeft, kWidth) + group_ticks(points, kLeft, step, kBottom);
  body += label(kLeft - 6, kBottom + kZeroBelow + 4, "end", "0");
  body += line("axis", kLeft, kTop, kLeft, kBottom + 26);
  for (std::size_t i = 0; i < points.size(); ++i)
    if (points[i]->value)
      body +=
          dot(*points[i], kLeft + step * (static_cast<double>(i) + 0.5), axis.y(*points[i]->value));
  return {std::move(title), std::move(body), kWidth, static_cast<int>(kHeight)};
}

doc::Chart bar_chart(std::string title, const std::vector<ChartPoint>& points) {
  constexpr double kLeft = 260, kRow = 22;
  double most = 0;
  for (const ChartPoint& point : points)
    if (is_positive(point.value)) most = std::max(most, *point.value);
  std::string body;
  double y = 8;
  for (const ChartPoint& point : points) {
    if (!point.value) continue;
    const double share = !std::isfinite(*point.value) ? 1 : most > 0 ? *point.value / most : 0;
    const double length = std::max(1.0, share * (kWidth - kLeft - 90));
    body += label(kLeft - 8, y + 12, "end", escaped(point.label, kNameColumns));
    body += rect(name_of(point.look), {kLeft, y, length, 15}, escaped(point.label));
    body += label(kLeft + length + 6, y + 12, "start", short_number(*point.value));
    y += kRow;
  }
  return {std::move(title), std::move(body), kWidth, static_cast<int>(y) + 6};
}

doc::Chart heat_map(std::string title, const HeatMap& map) {
  constexpr double kLeft = 170, kTop = 8, kRow = 20, kStepMax = 40;
  const std::size_t count = map.columns.size();
  const double step = std::min(kStepMax, (kWidth - kLeft) / static_cast<double>(count + 1));
  const auto x_of = [&](std::size_t column) { return kLeft + step * static_cast<double>(column); };
  const HeatScale scale(map);
  std::string body;
  double y = kTop;
  for (std::size_t row = 0; row < map.rows.size(); ++row, y += kRow) {
    body += label(kLeft - 8, y + 14, "end", escaped(map.rows[row], 24));
    for (std::size_t column = 0; column < count; ++column) {
      const std::optional<double>& value = map.values[row * count + column];
      if (!value) continue;
      const std::string about = fmt::format("{} · {}: {} {}", escaped(map.columns[column]),
                                            escaped(map.rows[row]), map.unit, short_number(*value));
      body += rect(scale.look(*value), {x_of(column), y, std::max(1.0, step - 1), kRow - 1}, about);
    }
  }
  const std::size_t stride = count / kTicksMax + 1;
  const auto room = static_cast<std::size_t>(step * static_cast<double>(stride) / 6);  // Letters.
  for (std::size_t column = 0; column < count; column += stride)
    body += label(x_of(column) + step / 2, y + 14, "middle", escaped(map.columns[column], room));
  body += scale.legend(kLeft, y + 26);
  return {std::move(title), std::move(body), kWidth, static_cast<int>(y) + 56};
}

doc::Chart line_chart(std::string title, const std::vector<std::string>& steps,
                      const std::vector<ChartSeries>& series) {
  constexpr double kLeft = 56, kTop = 20, kBottom = 240, kRight = kWidth - 190, kLegendRow = 18;
  std::vector<std::optional<double>> all;
  for (const ChartSeries& each : series)
    all.insert(all.end(), each.values.begin(), each.values.end());
  const Axis axis(fitting(all), all, kTop, kBottom);
  const double gaps = std::max<double>(1, static_cast<double>(steps.size()) - 1);
  const auto x_of = [&](std::size_t i) {
    return kLeft + (kRight - kLeft) / gaps * static_cast<double>(i);
  };
  std::string body = axis.grid(kLeft, kRight);
  for (std::size_t i = 0; i < steps.size(); i += steps.size() / 10 + 1)
    body += label(x_of(i), kBottom + 26, "middle", escaped(steps[i], 14));
  double legend = kTop;
  for (std::size_t which = 0; which < series.size(); ++which, legend += kLegendRow) {
    const std::string look = fmt::format("s{}", which % 8);
    const std::string name = escaped(series[which].name);
    std::string path, dots;
    for (std::size_t i = 0; i < series[which].values.size(); ++i) {
      const std::optional<double>& value = series[which].values[i];
      if (!value) continue;
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x_of(i), axis.y(*value));
      const std::string about =
          fmt::format("{} · {}: {}", name, escaped(steps[i]), short_number(*value));
      dots += circle(look, x_of(i), axis.y(*value), 3, about);
    }
    body += fmt::format(R"(<path class="{}" d="{}"/>)", look, path) + dots;
    body += rect(look, {kRight + 16, legend, 10, 10});
    body += label(kRight + 32, legend + 9, "start", escaped(series[which].name, 22));
  }
  return {std::move(title), std::move(body), kWidth, std::max(272, static_cast<int>(legend) + 6)};
}

}  // namespace tensordiff
