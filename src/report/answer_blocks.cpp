#include "report/answer_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/chart.h"

namespace tensordiff {
namespace {

using doc::Look;

std::optional<double> number_of(const Datum& datum) {
  return std::visit(
      []<class T>(const T& value) -> std::optional<double> {
        if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
          return static_cast<double>(value);
        else
          return std::nullopt;
      },
      datum.value);
}

doc::Cell cell_of(const Datum& datum) {
  doc::Cell cell{datum_text(datum)};
  cell.number = number_of(datum);
  cell.code =
      std::holds_alternative<std::string>(datum.value) && cell.text.find(' ') == std::string::npos;
  return cell;
}

// "largest_changes" -> "Largest changes"
std::string spoken(std::string_view name) {
  std::string out(name);
  std::ranges::replace(out, '_', ' ');
  if (!out.empty() && out[0] >= 'a' && out[0] <= 'z') out[0] = static_cast<char>(out[0] - 32);
  return out;
}

void add_listing(const Listing& list, doc::Document& document) {
  if (list.rows.empty()) return;
  doc::Table table;
  for (std::size_t i = 0; i < list.columns.size(); ++i)
    table.columns.push_back({spoken(list.columns[i]), number_of(list.rows[0][i]).has_value()});
  for (const std::vector<Datum>& row : list.rows) {
    std::vector<doc::Cell> cells;
    for (const Datum& datum : row) cells.push_back(cell_of(datum));
    table.rows.push_back(std::move(cells));
  }
  if (list.rows_in_all > list.rows.size())
    table.note = fmt::format("{} in all.", human_count(list.rows_in_all));
  document.blocks.emplace_back(doc::Text{spoken(list.name), Look::dim});
  document.blocks.emplace_back(std::move(table));
}

std::optional<double> known(double value) {
  return std::isnan(value) ? std::nullopt : std::optional(value);
}

doc::Chart drawn(const Chart& chart) {
  const std::string title = chart.title.empty() ? spoken(chart.name) : chart.title;
  if (chart.kind == Chart::Kind::heat_map) {
    HeatMap map;
    map.rows = chart.y;
    map.columns = chart.x;
    map.decades = false;
    for (const double value : chart.values) map.values.push_back(known(value));
    return heat_map(title, map);
  }
  if (chart.kind == Chart::Kind::line) {
    std::vector<ChartSeries> series;
    for (std::size_t row = 0; row < chart.y.size(); ++row) {
      series.push_back({chart.y[row], {}});
      for (std::size_t i = 0; i < chart.x.size(); ++i)
        series.back().values.push_back(known(chart.values[row * chart.x.size() + i]));
    }
    return line_chart(title, chart.x, series);
  }
  std::vector<ChartPoint> points;
  for (std::size_t i = 0; i < chart.x.size(); ++i)
    points.push_back({chart.x[i], known(chart.values[i])});
  return bar_chart(title, points);
}

}  // namespace

void add_answers(const std::vector<Answer>& answers, doc::Document& document) {
  for (const Answer& answer : answers) {
    document.blocks.emplace_back(doc::Heading{spoken(answer.name)});
    if (answer.alarm) document.blocks.emplace_back(doc::Callout{Look::bad, "Alarm", *answer.alarm});
    doc::Table fields{{{"field"}, {"value"}}, {}};
    for (const Field& field : answer.fields)
      fields.rows.push_back({{spoken(field.name)}, {datum_text(field.value)}});
    if (!fields.rows.empty()) document.blocks.emplace_back(std::move(fields));
    for (const Listing& list : answer.lists) add_listing(list, document);
    for (const Chart& chart : answer.charts) document.blocks.emplace_back(drawn(chart));
    doc::List remarks;
    for (const std::string& what : answer.missing) remarks.items.push_back("missing: " + what);
    for (const std::string& note : answer.notes) remarks.items.push_back("note: " + note);
    if (!remarks.items.empty()) document.blocks.emplace_back(std::move(remarks));
  }
}

}  // namespace tensordiff
