#include "report/analyses.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "report/table.h"
#include "report/text_chart.h"

namespace tensordiff {
namespace {

void write_datum(JsonWriter& json, const Datum& datum) {
  std::visit(
      [&]<class T>(const T& value) {
        if constexpr (std::is_same_v<T, std::monostate>)
          json.null();
        else
          json.value(value);
      },
      datum.value);
}

void write_list(JsonWriter& json, const Listing& list) {
  json.key(list.name).begin_array();
  for (const std::vector<Datum>& row : list.rows) {
    json.begin_object();
    for (std::size_t i = 0; i < row.size(); ++i) {
      json.key(list.columns[i]);
      write_datum(json, row[i]);
    }
    json.end_object();
  }
  json.end_array();
  if (list.rows_in_all > list.rows.size()) json.member(list.name + "_in_all", list.rows_in_all);
}

std::string_view chart_word(Chart::Kind kind) {
  constexpr std::string_view kNames[] = {"bars", "line", "heat_map"};
  return kNames[static_cast<std::size_t>(kind)];
}

void write_chart(JsonWriter& json, const Chart& chart) {
  json.key(chart.name).begin_object().member("kind", chart_word(chart.kind));
  json.member("title", chart.title).member("x", chart.x).member("y", chart.y);
  json.key("values").begin_array();
  for (std::size_t row = 0; row < chart.y.size(); ++row) {
    json.begin_array();
    for (std::size_t column = 0; column < chart.x.size(); ++column)
      json.value(chart.values[row * chart.x.size() + column]);
    json.end_array();
  }
  json.end_array().end_object();
}

// Sentences: they are wrapped below their row where there is no room beside it.
bool is_sentence(const Listing& list, std::size_t column) {
  for (const std::vector<Datum>& row : list.rows)
    if (const auto* text = std::get_if<std::string>(&row[column].value))
      if (text->find(' ') != std::string::npos) return true;
  return false;
}

// Names of tensors: they keep their layer and their last part where there is little room.
bool is_name(const Listing& list, std::size_t column) {
  constexpr std::string_view kColumns[] = {"tensor", "name", "layer", "group"};
  return std::ranges::find(kColumns, list.columns[column]) != std::end(kColumns);
}

std::size_t width_of(const Listing& list, std::size_t column, std::size_t rows) {
  std::size_t width = columns(list.columns[column]);
  for (std::size_t row = 0; row < rows; ++row)
    width = std::max(width, columns(printable(datum_text(list.rows[row][column]))));
  return width + 2;
}

// Which columns of sentences stand below their rows: the last ones, until the others fit.
std::vector<bool> columns_below(const Listing& list, std::size_t rows, std::size_t width) {
  std::vector<bool> below(list.columns.size());
  std::size_t total = 0;
  for (std::size_t i = 0; i < below.size(); ++i) total += width_of(list, i, rows);
  for (std::size_t i = below.size(); i-- > 1 && total > width;) {
    if (!is_sentence(list, i)) continue;
    below[i] = true;
    total -= width_of(list, i, rows);
  }
  return below;
}

std::string list_text(const Listing& list, const Style& style, std::size_t rows_max,
                      std::size_t width) {
  if (list.rows.empty()) return "";
  const std::size_t count = std::min(rows_max, list.rows.size());
  const std::vector<bool> below = columns_below(list, count, width);
  std::vector<Column> columns;
  for (std::size_t i = 0; i < list.columns.size(); ++i) {
    const bool text = std::holds_alternative<std::string>(list.rows[0][i].value);
    if (!below[i])
      columns.push_back({list.columns[i], text ? Column::Side::left : Column::Side::right,
                         static_cast<int>(i), text && is_name(list, i)});
  }
  Table table(std::move(columns));
  for (std::size_t row = 0; row < count; ++row) {
    std::vector<Cell> cells;
    std::vector<std::string> remarks;
    for (std::size_t i = 0; i < list.columns.size(); ++i) {
      const std::string text = printable(datum_text(list.rows[row][i]), 1000);
      if (!below[i]) cells.push_back({text});
      if (below[i] && !text.empty() && list.rows[row][i] != Datum())
        remarks.push_back(wrapped(text, width > 16 ? width - 6 : 10, "      "));
    }
    table.add(std::move(cells), std::move(remarks));
  }
  std::string out = table.render(style, width);
  if (list.rows_in_all > count)
    out +=
        "  " + style(Tone::dim, fmt::format("… {} in all", human_count(list.rows_in_all))) + "\n";
  return out;
}

}  // namespace

void write_answer(JsonWriter& json, const Answer& answer) {
  json.begin_object();
  for (const Field& field : answer.fields) {
    json.key(field.name);
    write_datum(json, field.value);
  }
  for (const Listing& list : answer.lists) write_list(json, list);
  if (!answer.charts.empty()) {
    json.key("charts").begin_object();
    for (const Chart& chart : answer.charts) write_chart(json, chart);
    json.end_object();
  }
  if (answer.alarm) json.member("alarm", *answer.alarm);
  json.member("missing", answer.missing).member("notes", answer.notes).end_object();
}

std::string answer_line(const Answer& answer) {
  std::string out = std::string(answer.name) + ":";
  for (const Field& field : answer.fields) {
    const bool quoted = datum_text(field.value).find(' ') != std::string::npos;
    out +=
        fmt::format("{} {}={}{}{}", out.ends_with(':') ? "" : ",", field.name, quoted ? "\"" : "",
                    printable(datum_text(field.value), 1000), quoted ? "\"" : "");
  }
  return out;
}

std::string alarm_lines(const std::vector<Answer>& answers, const Style& style) {
  std::string out;
  for (const Answer& answer : answers)
    if (answer.alarm)
      out += fmt::format("{}  {}: {}\n", style(Tone::bad, "alarm"), answer.name,
                         printable(*answer.alarm, 1000));
  return out;
}

std::string answers_text(const std::vector<Answer>& answers, const Style& style,
                         std::size_t rows_max, std::size_t width) {
  std::string out;
  const std::size_t text_width = width > 24 ? width - 11 : 13;
  for (const Answer& answer : answers) {
    out += "\n" + style(Tone::bold, answer.name) + "\n";
    for (const Field& field : answer.fields)
      out += fmt::format("  {}  {}\n", style(Tone::dim, field.name),
                         printable(datum_text(field.value), 1000));
    if (answer.alarm)
      out += fmt::format("  {}  {}\n", style(Tone::bad, "alarm"), printable(*answer.alarm, 1000));
    for (const std::string& what : answer.missing)
      out += fmt::format("  {}  {}\n", style(Tone::trouble, "missing"),
                         wrapped(printable(what, 1000), text_width, "           "));
    for (const std::string& note : answer.notes)
      out += fmt::format("  {}  {}\n", style(Tone::dim, "note"),
                         wrapped(printable(note, 1000), text_width, "        "));
    for (const Listing& list : answer.lists) out += list_text(list, style, rows_max, width);
    for (const Chart& chart : answer.charts) out += chart_text(chart, style, width);
  }
  return out;
}

}  // namespace tensordiff
