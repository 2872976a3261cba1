#include "report/batch_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/chart.h"
#include "report/compare_document.h"
#include "report/csv_row.h"
#include "report/divergence_text.h"
#include "report/junit.h"
#include "report/selection.h"
#include "report/table.h"
#include "report/wording.h"

namespace tensordiff {
namespace {

constexpr std::size_t kBarsMax = 20;

struct Count {
  Conclusion verdict;
  uint64_t rows;
};

// Of each verdict, the worst first.
std::vector<Count> count(const std::vector<BatchRow>& rows) {
  std::vector<Count> counts;
  for (std::size_t i = kConclusions; i-- > 0;) {
    const auto verdict = static_cast<Conclusion>(i);
    counts.push_back(
        {verdict, static_cast<uint64_t>(std::ranges::count(rows, verdict, &BatchRow::verdict))});
  }
  return counts;
}

std::string about(const BatchRow& row) {
  if (row.message.empty() || row.divergence.empty()) return row.message + row.divergence;
  return row.divergence + "; " + row.message;
}

Conclusion worst_of(const std::vector<BatchRow>& rows) {
  Conclusion worst = Conclusion::same;
  for (const BatchRow& row : rows) worst = std::max(worst, row.verdict);
  return worst;
}

std::string text_of(const std::vector<BatchRow>& rows, const RenderOptions& options) {
  using enum Column::Side;
  const Style style(options.color);
  std::string list;
  for (const auto& [verdict, found] : count(rows)) {
    if (found == 0) continue;
    list += list.empty() ? "" : ", ";
    list += style(tone_of(verdict), fmt::format("{} {}", found, verdict_text(verdict)));
  }
  std::string out = fmt::format("{}: {}\n", counted(rows.size(), "comparison"), list);
  if (options.brief) return out;
  Table table({{"name"},
               {"verdict"},
               {"pairs", right, 2},
               {"different", right},
               {"unpaired", right, 1},
               {"worst rel L2", right}});
  for (const BatchRow& row : rows) {
    std::vector<std::string> remarks;
    if (!about(row).empty()) remarks.push_back(printable(about(row), 1000));
    table.add({{printable(row.name)},
               {std::string(name_of(row.verdict)), tone_of(row.verdict)},
               {human_count(row.pairs)},
               {human_count(row.different)},
               {human_count(row.unpaired)},
               {number_or_dash(row.worst)}},
              std::move(remarks));
  }
  return out + "\n" + table.render(style, options.width);
}

std::string json_of(const std::vector<BatchRow>& rows) {
  JsonWriter json(JsonWriter::Style::indented);
  json.begin_object().member("schema", "tensordiff.batch/1").key("summary").begin_object();
  json.member("runs", uint64_t{rows.size()});
  for (const auto& [verdict, found] : count(rows)) json.member(name_of(verdict), found);
  json.member("exit", worst_exit(rows)).end_object().key("runs").begin_array();
  for (const BatchRow& row : rows) write_row(json, row);
  json.end_array().end_object();
  return json.take() + "\n";
}

std::string csv_of(const std::vector<BatchRow>& rows) {
  std::string out = "name,a,b,verdict,exit,pairs,different,unpaired,worst_rel_l2,about\n";
  for (const BatchRow& row : rows) {
    CsvRow line;
    line.text(row.name).text(row.a).text(row.b).field(name_of(row.verdict));
    line.field(int64_t{row.status});
    line.field(row.pairs).field(row.different).field(row.unpaired).field(row.worst);
    out += line.text(about(row)).take();
  }
  return out;
}

std::string junit_of(const std::vector<BatchRow>& rows) {
  JunitSuite suite{"tensordiff batch", {}, {}};
  for (const BatchRow& row : rows) {
    JunitCase test{"batch", row.name};
    if (row.status == 1) test.outcome = JunitCase::Outcome::failed;
    if (row.status == 2) test.outcome = JunitCase::Outcome::error;
    test.message = about(row).empty() ? std::string(name_of(row.verdict)) : about(row);
    test.details = fmt::format("a = {}\nb = {}\n{} of {} different, {} unpaired\n",
                               printable(row.a, 1000), printable(row.b, 1000), row.different,
                               counted(row.pairs, "pair"), row.unpaired);
    suite.cases.push_back(std::move(test));
  }
  return junit_text({suite});
}

doc::Document document_of(const std::vector<BatchRow>& rows) {
  doc::Document document;
  document.title = counted(rows.size(), "comparison");
  document.verdict = name_of(worst_of(rows));
  document.look = look_of(worst_of(rows));
  doc::Tiles tiles;
  for (const auto& [verdict, found] : count(rows))
    if (found > 0)
      tiles.tiles.push_back({std::string(name_of(verdict)), human_count(found), look_of(verdict)});
  document.blocks.emplace_back(std::move(tiles));

  std::vector<ChartPoint> bars;
  for (const BatchRow& row : rows)
    if (row.worst && *row.worst > 0) bars.push_back({row.name, row.worst, look_of(row.verdict)});
  std::ranges::stable_sort(bars, std::greater(), [](const ChartPoint& bar) { return *bar.value; });
  if (bars.size() > kBarsMax) bars.resize(kBarsMax);
  if (bars.size() > 1)
    document.blocks.emplace_back(bar_chart("Largest relative L2 error of each", bars));

  doc::Table table{{{"name"},
                    {"verdict"},
                    {"pairs", true},
                    {"different", true},
                    {"unpaired", true},
                    {"worst rel L2", true},
                    {"where and why"}},
                   {}};
  table.searchable = true;
  const auto number = [](uint64_t value) {
    return doc::Cell{human_count(value), doc::Look::plain, false, static_cast<double>(value)};
  };
  for (const BatchRow& row : rows)
    table.rows.push_back({{row.name, doc::Look::plain, true},
                          {std::string(name_of(row.verdict)), look_of(row.verdict)},
                          number(row.pairs),
                          number(row.different),
                          number(row.unpaired),
                          {number_or_dash(row.worst), doc::Look::plain, false, row.worst},
                          {about(row), doc::Look::dim}});
  document.blocks.emplace_back(std::move(table));
  return document;
}

}  // namespace

BatchRow batch_row(const Report& report) {
  BatchRow row;
  row.a = report.a.path;
  row.b = report.b.path;
  row.verdict = report.summary.verdict;
  row.pairs = report.pairs.size();
  row.different = report.summary.different + report.summary.incomparable + report.summary.error;
  for (const auto* side : {&report.only_a, &report.only_b})
    row.unpaired +=
        static_cast<uint64_t>(std::ranges::count_if(*side, &Report::Unpaired::is_difference));
  for (const PairRow& pair : report.pairs)
    if (const auto error = as_shown(pair.comparison.diff).rel_l2;
        error && *error >= row.worst.value_or(0))
      row.worst = error;
  if (!report.summary.caveat.empty()) row.message = report.summary.caveat + "; ";
  for (const Answer& answer : report.analyses)
    if (answer.alarm) row.message += fmt::format("{}: {}; ", answer.name, *answer.alarm);
  if (row.message.ends_with("; ")) row.message.resize(row.message.size() - 2);
  if (!report.first_divergence) return row;
  const PairRow* largest = report.steps ? nullptr : largest_change(report);
  const PairRow& told = largest ? *largest : report.pairs[report.first_divergence->pair];
  const Finding* finding = finding_at(report, told.index);
  row.divergence = largest ? "largest change: " + names_of(told) : place_of(told);
  if (finding) row.divergence += fmt::format(": {}: {}", finding->code, cause_of(*finding));
  return row;
}

void write_row(JsonWriter& json, const BatchRow& row) {
  json.begin_object().member("name", row.name).member("a", row.a).member("b", row.b);
  json.member("verdict", name_of(row.verdict))
      .member("exit", row.status)
      .member("pairs", row.pairs);
  json.member("different", row.different).member("unpaired", row.unpaired);
  json.member("worst_rel_l2", row.worst).member("divergence", row.divergence);
  json.member("message", row.message).end_object();
}

Result<BatchRow> read_row(const Json& json) {
  BatchRow row;
  row.name = json["name"].string();
  row.a = json["a"].string();
  row.b = json["b"].string();
  const std::optional<Conclusion> verdict = conclusion_named(json["verdict"].string());
  row.verdict = verdict.value_or(Conclusion::trouble);
  row.status = static_cast<int>(json["exit"].u64().value_or(2));
  row.pairs = json["pairs"].u64().value_or(0);
  row.different = json["different"].u64().value_or(0);
  row.unpaired = json["unpaired"].u64().value_or(0);
  row.worst = json["worst_rel_l2"].number();
  if (json["worst_rel_l2"].string() == "inf") row.worst = HUGE_VAL;
  row.divergence = json["divergence"].string();
  row.message = json["message"].string();
  if (!verdict || row.status > 2) return Error("not the row of a batch");
  return row;
}

int worst_exit(const std::vector<BatchRow>& rows) {
  int worst = 0;
  for (const BatchRow& row : rows) worst = std::max(worst, row.status);
  return worst;
}

std::string render_batch(const std::vector<BatchRow>& rows, std::string_view output,
                         const RenderOptions& options) {
  if (output == "json") return json_of(rows);
  if (output == "csv") return csv_of(rows);
  if (output == "junit") return junit_of(rows);
  if (output == "markdown") return doc::markdown_of(document_of(rows), options.charts);
  if (output == "html") return doc::html_of(document_of(rows));
  return text_of(rows, options);
}

}  // namespace tensordiff
