#include "serve/rows.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <span>

#include "base/text.h"
#include "match/matcher.h"
#include "naming/naming.h"
#include "report/wire.h"
#include "report/wording.h"
#include "serve/columns.h"

namespace tensordiff::serve {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

template <class T>
double or_nan(const std::optional<T>& value) {
  return value ? static_cast<double>(*value) : kNan;
}

// In the columns; what it means is in wire::kRowStatuses.
uint8_t code_of(const Row& row) {
  switch (row.kind) {
    case Row::Kind::single:
      return wire::row_code("single");
    case Row::Kind::only_a:
      return wire::row_code("only_a");
    case Row::Kind::only_b:
      return wire::row_code("only_b");
    case Row::Kind::pair:
      break;
  }
  return wire::row_code(row.pending ? "pending" : name_of(row.pair->comparison.status));
}

// Where in the model a row belongs.
struct RowPlace {
  std::optional<int64_t> layer;
  std::string stage;  // What it is within the layer.
};

// By what it was paired by, else by the name of a, or of the one tensor that it has.
RowPlace place_of(const Row& row) {
  if (row.pair && row.pair->layer) return {row.pair->layer, row.pair->stage};
  const TensorId& id = row.pair ? row.pair->a : row.alone->id;
  if (!id.place.layer_named || id.place.layer < 0) return {};
  // An encoder and a decoder have the same layers: the tower tells them apart.
  const std::string_view tower = tensordiff::name_of(id.place.tower);
  const std::string_view stage = stage_in(id.name, id.place);
  if (tower.empty() || stage.empty()) return {id.place.layer, std::string(stage)};
  return {id.place.layer, fmt::format("{} {}", tower, stage)};
}

std::string group_of(const Row& row) {
  const RowPlace place = place_of(row);
  if (place.layer) return fmt::format("layer {}", *place.layer);
  const std::string& name = row.name_a().empty() ? row.name_b() : row.name_a();
  const std::size_t end = name.find_last_of("./");
  return end == std::string::npos ? "" : valid_utf8(name.substr(0, end));
}

const TensorId* side(const Row& row, char which) {
  if (row.pair) return which == 'a' ? &row.pair->a : &row.pair->b;
  const bool is_b = row.kind == Row::Kind::only_b;
  return is_b == (which == 'b') ? &row.alone->id : nullptr;
}

std::string dtype_of(const Row& row, char which) {
  const TensorId* id = side(row, which);
  return id ? std::string(tensordiff::name_of(id->dtype)) : "";
}

std::string shape_of(const Row& row, char which) {
  const TensorId* id = side(row, which);
  return id ? comma_text(id->shape) : "";
}

double elements_of(const Row& row) {
  const Shape* shape = row.pair ? &row.pair->shape : &row.alone->id.shape;
  if (row.pair && !was_compared(row)) shape = &row.pair->a.shape;
  return static_cast<double>(element_count(*shape).value_or(0));
}

std::string verdict_word(const Row& row) {
  return row.pair && row.pair->verdict ? std::string(tensordiff::name_of(*row.pair->verdict)) : "";
}

std::string message_of(const Row& row) {
  return valid_utf8(row.pair ? tensordiff::message_of(*row.pair) : row.alone->id.fault);
}

// A number of the comparison, where there is one.
double metric(const Row& row, const wire::Field<Diff>& field) {
  if (!was_compared(row)) return kNan;
  const Diff& diff = row.pair->comparison.diff;
  const wire::Cell cell =
      diff.nonfinite_mismatch > 0 ? field.cell(as_shown(diff)) : field.cell(diff);
  if (const auto* count = std::get_if<uint64_t>(&cell)) return static_cast<double>(*count);
  const auto* number = std::get_if<double>(&cell);
  return number ? *number : kNan;
}

template <Stats Comparison::*Side, uint64_t Stats::*Member>
double counted(const Row& row) {
  return was_compared(row) ? static_cast<double>(row.pair->comparison.*Side.*Member) : kNan;
}

struct RowColumn {
  enum class Type { u8, u32, i32, f64, str };
  std::string_view name;
  Type type;
  double (*number)(const Row&) = nullptr;
  std::string (*text)(const Row&) = nullptr;  // Of a str; of a code, its word in JSON.
  const wire::Field<Diff>* metric = nullptr;  // Instead of both.
};

using T = RowColumn::Type;
constexpr RowColumn kOfRows[] = {
    {"id", T::u32, [](const Row& row) { return static_cast<double>(row.id); }},
    {"order", T::u32, [](const Row& row) { return static_cast<double>(row.order); }},
    {"status", T::u8, [](const Row& row) { return static_cast<double>(code_of(row)); },
     [](const Row& row) { return std::string(status_word(row)); }},
    {"verdict", T::u8,
     [](const Row& row) {
       return row.pair && row.pair->verdict ? 1.0 + static_cast<int>(*row.pair->verdict) : 0.0;
     },
     verdict_word},
    {"layer", T::i32,
     [](const Row& row) { return static_cast<double>(place_of(row).layer.value_or(-1)); }},
    {"stage", T::str, nullptr, [](const Row& row) { return valid_utf8(place_of(row).stage); }},
    {"group", T::str, nullptr, group_of},
    {"nameA", T::str, nullptr, [](const Row& row) { return valid_utf8(row.name_a()); }},
    {"nameB", T::str, nullptr, [](const Row& row) { return valid_utf8(row.name_b()); }},
    {"matchedBy", T::str, nullptr,
     [](const Row& row) { return std::string(row.pair ? matched_by_text(*row.pair) : ""); }},
    {"dtypeA", T::str, nullptr, [](const Row& row) { return dtype_of(row, 'a'); }},
    {"dtypeB", T::str, nullptr, [](const Row& row) { return dtype_of(row, 'b'); }},
    {"shapeA", T::str, nullptr, [](const Row& row) { return shape_of(row, 'a'); }},
    {"shapeB", T::str, nullptr, [](const Row& row) { return shape_of(row, 'b'); }},
    {"shape", T::str, nullptr,
     [](const Row& row) { return was_compared(row) ? comma_text(row.pair->shape) : ""; }},
    {"elements", T::f64, elements_of},
    {"steps", T::u8,
     [](const Row& row) {
       return row.pair ? std::min(255.0, static_cast<double>(row.pair->steps.size())) : 0.0;
     }},
    {"nanA", T::f64, counted<&Comparison::a, &Stats::nan>},
    {"infA", T::f64, counted<&Comparison::a, &Stats::inf>},
    {"nanB", T::f64, counted<&Comparison::b, &Stats::nan>},
    {"infB", T::f64, counted<&Comparison::b, &Stats::inf>},
    {"ratio", T::f64,
     [](const Row& row) {
       return was_compared(row) ? or_nan(tolerance_ratio(row.pair->comparison.diff)) : kNan;
     }},
    {"likeness", T::f64, [](const Row& row) { return row.alone ? row.alone->likeness : kNan; }},
    {"nearest", T::str, nullptr,
     [](const Row& row) { return row.alone ? valid_utf8(row.alone->nearest) : ""; }},
    {"note", T::u8, [](const Row& row) { return row.note.empty() ? 0.0 : 1.0; }},
    {"message", T::str, nullptr, message_of},
};

// Those above, and every number of the comparison.
const std::vector<RowColumn>& all_columns() {
  static std::deque<std::string> names;  // What the columns call themselves by.
  static const std::vector<RowColumn> kColumns = [] {
    std::vector<RowColumn> all(std::begin(kOfRows), std::end(kOfRows));
    for (const wire::Field<Diff>& field : wire::diff_fields())
      if (field.type.kind == wire::Kind::count || field.type.kind == wire::Kind::number)
        all.push_back(
            {names.emplace_back(wire::camel(field.name)), T::f64, nullptr, nullptr, &field});
    return all;
  }();
  return kColumns;
}

double number_of(const RowColumn& column, const Row& row) {
  return column.metric ? metric(row, *column.metric) : column.number(row);
}

bool sends_all(const SessionState& state, std::optional<uint64_t> since) {
  return !since || *since < state.run_rev;
}

std::vector<Row> changed_rows(const SessionState& state, std::optional<uint64_t> since) {
  std::vector<Row> rows;
  for (std::size_t id = 0; id < state.row_count(); ++id)
    if (sends_all(state, since) || state.row_revs[id] > *since) rows.push_back(state.row(id));
  return rows;
}

std::string head(const SessionState& state, std::optional<uint64_t> since) {
  return fmt::format("\"rev\":{},\"run\":{},\"full\":{},", state.rev, state.run,
                     sends_all(state, since));
}

std::vector<RowColumn> columns_of(const RowsWanted& wanted) {
  std::vector<RowColumn> columns;
  for (const RowColumn& column : all_columns())
    if (std::ranges::find(wanted.columns, column.name) != wanted.columns.end())
      columns.push_back(column);
  return columns;
}

void append(const RowColumn& column, std::span<const Row> rows, ColumnCells& cells) {
  for (const Row& row : rows) {
    switch (column.type) {
      case T::u8:
        cells.add(static_cast<uint8_t>(number_of(column, row)));
        break;
      case T::u32:
        cells.add(static_cast<uint32_t>(number_of(column, row)));
        break;
      case T::i32:
        cells.add(static_cast<int32_t>(number_of(column, row)));
        break;
      case T::f64:
        cells.add(number_of(column, row));
        break;
      case T::str:
        cells.add(column.text(row));
        break;
    }
  }
}

void write_cell(JsonWriter& json, const RowColumn& column, const Row& row) {
  json.key(column.name);
  if (column.type == T::str) {
    json.value(column.text(row));
  } else if (column.text) {
    const std::string word = column.text(row);
    word.empty() ? json.null() : json.value(word);
  } else {
    const double number = number_of(column, row);
    std::isnan(number) ? json.null() : json.value(number);
  }
}

}  // namespace

std::string comma_text(const Shape& shape) {
  std::string text;
  for (const uint64_t size : shape) text += (text.empty() ? "" : ",") + std::to_string(size);
  return text;
}

std::string_view status_word(const Row& row) { return wire::kRowStatuses[code_of(row)]; }

bool was_compared(const Row& row) {
  if (!row.pair || row.pending) return false;
  const Status status = row.pair->comparison.status;
  return status != Status::incomparable && status != Status::error;
}

std::optional<double> tolerance_ratio(const Diff& diff) {
  if (diff.nonfinite_mismatch > 0) return std::numeric_limits<double>::infinity();
  if (!diff.max_abs) return std::nullopt;
  const double atol = diff.tolerance.atol, rtol = diff.tolerance.rtol;
  const double allowed = atol + rtol * std::abs(diff.a_there.value_or(0));
  const double there = *diff.max_abs == 0 ? 0 : *diff.max_abs / allowed;
  if (diff.exceeding == 0 || there > 1) return there;
  // Another element exceeds it: the lesser of two bounds on by how much.
  const double by_atol = *diff.max_abs / atol;
  return rtol > 0 && diff.rtol_needed ? std::min(by_atol, *diff.rtol_needed / rtol) : by_atol;
}

std::vector<std::string_view> row_columns() {
  std::vector<std::string_view> names;
  for (const RowColumn& column : all_columns()) names.push_back(column.name);
  return names;
}

std::string rows_as_columns(const SessionState& state, const RowsWanted& wanted) {
  const std::vector<Row> rows = changed_rows(state, wanted.since);
  const std::vector<RowColumn> chosen = columns_of(wanted);
  // A row is large: all columns of a few of them, before they leave the cache, then of the next.
  constexpr std::size_t kRowsAtOnce = 64;
  std::vector<ColumnCells> cells(chosen.size());
  for (std::size_t first = 0; first < rows.size(); first += kRowsAtOnce) {
    const auto some = std::span(rows).subspan(first, std::min(kRowsAtOnce, rows.size() - first));
    for (std::size_t i = 0; i < cells.size(); ++i) append(chosen[i], some, cells[i]);
  }
  Columns columns(rows.size());
  for (std::size_t i = 0; i < cells.size(); ++i) columns.add(chosen[i].name, std::move(cells[i]));
  return columns.finish(head(state, wanted.since));
}

std::string rows_as_json(const SessionState& state, const RowsWanted& wanted) {
  const std::vector<Row> rows = changed_rows(state, wanted.since);
  const std::vector<RowColumn> chosen = columns_of(wanted);
  JsonWriter json;
  json.begin_object().member("n", uint64_t{rows.size()}).key("rows").begin_array();
  for (const Row& row : rows) {
    json.begin_object();
    for (const RowColumn& column : chosen) write_cell(json, column, row);
    json.end_object();
  }
  std::string text = json.end_array().end_object().take();
  return text.insert(1, head(state, wanted.since));
}

}  // namespace tensordiff::serve
