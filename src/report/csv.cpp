// `-o csv`: a row for each pair and each unpaired tensor, for spreadsheets and data frames.
//
// An undefined number is an empty field. Fields are quoted as RFC 4180 has it.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/csv_row.h"
#include "report/divergence_text.h"
#include "report/renderer.h"
#include "report/selection.h"
#include "report/wire.h"

namespace tensordiff {
namespace {

using wire::Cell;
using wire::Field;

void add(CsvRow& row, const Cell& cell) {
  std::visit(
      [&](const auto& value) {
        using V = std::remove_cvref_t<decltype(value)>;
        if constexpr (std::same_as<V, std::monostate>)
          row.skip(1);
        else if constexpr (std::same_as<V, bool>)
          row.field(value ? "true" : "false");
        else if constexpr (std::convertible_to<V, std::string_view>)
          row.text(value);
        else if constexpr (std::is_arithmetic_v<V>)
          row.field(value);
        else
          row.text(fmt::format("{}", fmt::join(value, " ")));
      },
      cell);
}

// Whether the two part here: "first", "next" or nothing.
std::string divergence_of(const Report& report, std::size_t pair) {
  if (report.first_divergence && report.first_divergence->pair == pair) return "first";
  const bool next = std::ranges::find(report.next_divergences, pair, &Divergence::pair) !=
                    report.next_divergences.end();
  return next ? "next" : "";
}

std::string findings_of(const Report& report, std::size_t pair) {
  std::string out;
  for (const Finding& finding : report.findings)
    if (finding.pair == pair)
      out += fmt::format("{}{}: {}", out.empty() ? "" : "; ", finding.code, cause_of(finding));
  return out;
}

// A column has one of these.
struct Column {
  std::string_view name;
  const Field<PairRow>* of_pair = nullptr;
  const Field<Diff>* of_diff = nullptr;
  std::string (*of_report)(const Report&, std::size_t pair) = nullptr;
};

// The fields of a pair, with its numbers one by one, and what the report as a whole tells of it.
const std::vector<Column>& columns() {
  static const std::vector<Column> kColumns = [] {
    std::vector<Column> all;
    for (const Field<PairRow>& field : wire::pair_fields()) {
      if (!field.in_csv) continue;
      if (field.type.of == &wire::kDiffTable)
        for (const Field<Diff>& number : wire::diff_fields())
          all.push_back({.name = number.name, .of_diff = &number});
      else
        all.push_back({.name = field.name, .of_pair = &field});
      if (field.name != "verdict") continue;
      all.push_back({.name = "diverges", .of_report = divergence_of});
      all.push_back({.name = "findings", .of_report = findings_of});
    }
    return all;
  }();
  return kColumns;
}

std::string header() {
  CsvRow row;
  for (const Column& column : columns()) row.field(column.name);
  return row.take();
}

std::string pair_line(const Report& report, const PairRow& pair) {
  const bool measured = !report.shape_only && pair.compared();
  CsvRow row;
  for (const Column& column : columns()) {
    if (column.of_pair) add(row, column.of_pair->cell(pair));
    if (column.of_diff) add(row, measured ? column.of_diff->cell(pair.comparison.diff) : Cell());
    if (column.of_report) row.text(column.of_report(report, pair.index));
  }
  return row.take();
}

// A line that has something in a few columns only.
std::string sparse_line(const std::map<std::string_view, Cell>& cells) {
  CsvRow row;
  for (const Column& column : columns()) {
    const auto found = cells.find(column.name);
    add(row, found == cells.end() ? Cell() : found->second);
  }
  return row.take();
}

std::string unpaired_line(const Report::Unpaired& unpaired, bool of_a) {
  const TensorId& tensor = unpaired.id;
  return sparse_line({{of_a ? "name_a" : "name_b", std::string_view(tensor.name)},
                      {"status", std::string_view(of_a ? "only_a" : "only_b")},
                      {of_a ? "dtype_a" : "dtype_b", name_of(tensor.dtype)},
                      {of_a ? "shape_a" : "shape_b", std::span<const uint64_t>(tensor.shape)},
                      {"message", std::string_view(tensor.fault)},
                      {"baseline", name_of(unpaired.novelty)}});
}

// A table of nothing says why it is one.
std::string nothing_line(const Summary& summary) {
  return sparse_line(
      {{"status", name_of(summary.verdict)}, {"message", std::string_view(summary.caveat)}});
}

std::string render(const Report& report, const RenderOptions& options) {
  std::string text = header();
  std::size_t rows_left = options.top.value_or(0) > 0 ? *options.top : report.pairs.size();
  for (const PairRow* row : select_pairs(report, options, Sort::layer)) {
    if (rows_left-- == 0) break;
    text += pair_line(report, *row);
  }
  if (report.pairs.empty() && !report.summary.caveat.empty()) text += nothing_line(report.summary);
  if (!options.show_unpaired) return text;
  for (const auto& tensor : report.only_a) text += unpaired_line(tensor, true);
  for (const auto& tensor : report.only_b) text += unpaired_line(tensor, false);
  return text;
}

}  // namespace

constinit const Renderer renderers::csv = {
    .name = "csv",
    .summary = "a row for each pair and each unpaired tensor",
    .unpaired_stats = false,
    .render = render,
};

}  // namespace tensordiff
