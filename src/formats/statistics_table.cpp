// Tables of statistics, as hooks of users write them in place of tensors:
//
//   CSV, also with tabs or semicolons:  name,shape,mean,std,min,max
//   a JSON object a line, or a list:    {"name": "model.norm", "mean": 0.1, "max": 3}
//   one JSON object:                    {"model.norm": {"mean": 0.1, "max": 3}, …}
//   a tree of transformers' debugger:   {"module_path": "M.norm", "outputs": {"mean": "tensor(…)"}}
//
// A row counts if it has two statistics by the usual names. A column of the step, of the rank and
// of the layer stands in front of the name. What goes into a module is left out: it came out of
// another one. Numbers of few digits are stored in a type of as few, so that printing is no
// difference.

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/json.h"
#include "base/text.h"
#include "formats/limits.h"
#include "formats/statistics.h"

namespace tensordiff {
namespace {

constexpr std::size_t kLooked = 64 << 10;
constexpr std::size_t kDepthMax = 64;  // Modules in modules.
constexpr std::size_t kColumnsMax = 256;
constexpr std::size_t kStatisticsMin = 2;

struct Spelling {
  std::string_view told, meant;
};
// In the order in which they are stored.
constexpr Spelling kStatistics[] = {
    {"max", "max"},           {"maximum", "max"},       {"min", "min"},
    {"minimum", "min"},       {"mean", "mean"},         {"avg", "mean"},
    {"average", "mean"},      {"norm", "norm"},         {"l2", "norm"},
    {"l2_norm", "norm"},      {"l2norm", "norm"},       {"norm2", "norm"},
    {"frobenius", "norm"},    {"l1", "l1_norm"},        {"l1_norm", "l1_norm"},
    {"std", "std"},           {"stddev", "std"},        {"std_dev", "std"},
    {"sum", "sum"},           {"absmax", "cur_amax"},   {"abs_max", "cur_amax"},
    {"amax", "cur_amax"},     {"max_abs", "cur_amax"},  {"absmean", "mean_abs"},
    {"abs_mean", "mean_abs"}, {"mean_abs", "mean_abs"}, {"rms", "rms"},
    {"var", "var"},           {"variance", "var"},
};
constexpr std::string_view kNames[] = {"name",       "module", "module_name", "module_path",
                                       "layer_name", "path",   "tensor_name", "tensor",
                                       "node",       "key",    "op",          "op_name"};
constexpr std::string_view kInputs[] = {"inputs",       "input", "input_args",
                                        "input_kwargs", "args",  "kwargs"};

std::string_view meant_by(std::string_view told) {
  const std::string text = lower(told);
  const auto* found = std::ranges::find(kStatistics, std::string_view(text), &Spelling::told);
  return found == std::end(kStatistics) ? std::string_view() : found->meant;
}

bool is_one_of(std::span<const std::string_view> words, std::string_view word) {
  return std::ranges::find(words, std::string_view(lower(word))) != words.end();
}

// "tensor(1.2e-01)", as torch prints a number, is the number.
std::optional<double> number_told(std::string_view text) {
  constexpr std::string_view kTensor = "tensor(";
  if (text.starts_with(kTensor))
    text = text.substr(kTensor.size(), text.find_first_of(",)") - kTensor.size());
  while (!text.empty() && (text[0] == ' ' || text[0] == '+')) text.remove_prefix(1);
  return number_in(text.substr(0, text.find_last_not_of(' ') + 1));
}

std::optional<double> number_told(const Json& value) {
  return value.is_string() ? number_told(value.string()) : value.number();
}

// Significant digits of a number as text: 5 of "tensor(-1.2345e-02)".
std::size_t digits_of(std::string_view text) {
  std::size_t count = 0;
  for (const char c : text.substr(0, text.find_first_of("eE", text.find_first_of("0123456789")))) {
    if (c < '0' || c > '9') continue;
    if (count > 0 || c != '0') ++count;
  }
  return count;
}

struct Row {
  std::string name, dtype;
  std::map<std::string_view, double> values;  // By what they mean.
};

// What a row says of where its tensor stands.
struct Where {
  std::string name, step, rank, layer;
  bool input = false;

  std::string text() const {
    std::string whole = name;
    if (!layer.empty() && all_digits(layer)) whole = fmt::format("layers.{}.{}", layer, name);
    if (!rank.empty()) whole = fmt::format("rank_{}/{}", rank, whole);
    return step.empty() ? whole : fmt::format("step_{}/{}", step, whole);
  }
};

// Whether a cell is of use for where its row stands.
void take_where(std::string_view column, std::string_view cell, Where& where) {
  const std::string text = lower(column);
  if (text == "step" || text == "iter" || text == "iteration" || text == "pass")
    where.step = cell;
  else if (text == "rank" || text == "tp_rank")
    where.rank = cell;
  else if ((text == "layer" || text == "layer_id" || text == "layer_idx") && all_digits(cell))
    where.layer = cell;
  else if (is_one_of(kNames, text) || text == "layer")
    where.name = where.name.empty() ? std::string(cell) : where.name;
  else if (text == "type" || text == "direction" || text == "io" || text == "kind")
    where.input = is_one_of(kInputs, cell);
}

std::vector<std::string> cells_of(std::string_view line, char separator) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"')
      quoted = !quoted;
    else if (c == separator && !quoted && cells.size() < kColumnsMax)
      cells.emplace_back();
    else
      cells.back() += c;
  }
  return cells;
}

// The mark between the columns of a table with statistics; nothing where a text is none.
std::optional<char> separator_in(std::string_view text) {
  const std::string_view line = take_line(text);
  for (const char separator : {',', '\t', ';'}) {
    std::size_t statistics = 0, names = 0;
    for (const std::string& cell : cells_of(line, separator)) {
      statistics += !meant_by(cell).empty();
      names += is_one_of(kNames, cell) || lower(cell) == "layer";
    }
    if (statistics >= kStatisticsMin && names > 0) return separator;
  }
  return std::nullopt;
}

// Two statistics by name, each with a value behind it.
bool has_keys(std::string_view text) {
  std::size_t found = 0;
  for (const Spelling& each : kStatistics) {
    const std::size_t at = text.find(fmt::format("\"{}\"", each.told));
    if (at == std::string_view::npos) continue;
    const std::string_view behind = text.substr(at + each.told.size() + 2);
    const std::size_t value = std::min(behind.find_first_not_of(" :"), behind.size());
    const std::string_view start = behind.substr(value);
    found +=
        behind.substr(0, value).find(':') != std::string_view::npos && !start.empty() &&
        (start.starts_with("\"tensor(") || start[0] == '-' || (start[0] >= '0' && start[0] <= '9'));
  }
  return found >= kStatisticsMin;
}

bool recognises(const Bytes& file) {
  const std::string_view text = as_text(file.view).substr(0, kLooked);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] < ' ') return false;
  if (text[first] == '{' || text[first] == '[') return has_keys(text);
  return separator_in(text.substr(first)).has_value();
}

class Table {
 public:
  explicit Table(const Limits& limits) : list_(limits) {}

  Result<void> read_lines(std::string_view text, char separator) {
    const std::vector<std::string> columns = cells_of(take_line(text), separator);
    while (!text.empty()) {
      const std::vector<std::string> cells = cells_of(take_line(text), separator);
      Row row;
      Where where;
      for (std::size_t i = 0; i < std::min(cells.size(), columns.size()); ++i) {
        const std::string_view meant = meant_by(columns[i]);
        if (columns[i] == "dtype") row.dtype = cells[i];
        if (meant.empty()) take_where(columns[i], cells[i], where);
        const std::optional<double> number = meant.empty() ? std::nullopt : number_told(cells[i]);
        if (number) take_value(meant, *number, cells[i], row);
      }
      if (!where.input) TRY(keep(where.text(), std::move(row)));
    }
    return {};
  }

  // An object is a row, or has rows in it under their names.
  Result<void> read(const Json& value, const std::string& above, std::size_t depth) {
    if (depth > kDepthMax) return Error("{}: nested too deeply", printable(above));
    for (std::size_t i = 0; i < value.array().size(); ++i) {
      const bool listed = value[i].is_object() && !name_in(value[i]).empty();
      TRY(read(value[i], listed ? above : joined(above, std::to_string(i)), depth + 1));
    }
    if (!value.is_object()) return {};
    Row row;
    Where where;
    for (const Json::Member& member : value.object()) take_member(member, row, where);
    const std::string name = where.name.empty() ? above : where.text();
    if (where.input) return {};
    if (row.values.size() >= kStatisticsMin) return keep(name, std::move(row));
    for (const Json::Member& member : value.object()) {
      const bool nested = member.value.is_object() || member.value.is_array();
      if (!nested || is_one_of(kInputs, member.key)) continue;
      TRY(read(member.value, is_plain(member.key) ? name : joined(name, member.key), depth + 1));
    }
    return {};
  }

  Result<Catalog> take() {
    if (rows_.empty()) return Error("no statistics of tensors in it");
    std::map<std::string, std::size_t> counts;  // By what a row tells.
    for (const Row& row : rows_) ++counts[labels_of(row)];
    const auto most =
        std::ranges::max_element(counts, {}, [](const auto& count) { return count.second; });
    std::size_t others = 0;
    for (const Row& row : rows_) {
      if (labels_of(row) != most->first) {
        ++others;
        continue;
      }
      std::vector<double> numbers;
      for (const auto& [label, number] : row.values) numbers.push_back(number);
      TRY(list_.add(row.name, numbers, most->first, stored_as(row, numbers)));
    }
    Catalog catalog = TRY(list_.take());
    if (others > 0)
      catalog.problems.push_back(
          {"", fmt::format("{} rows have other statistics than the most, and are left out", others),
           Severity::note});
    return catalog;
  }

 private:
  static std::string joined(const std::string& above, std::string_view name) {
    return above.empty() ? std::string(name) : fmt::format("{}.{}", above, name);
  }

  // Keys between a name and its statistics that say nothing of the name.
  static bool is_plain(std::string_view key) {
    constexpr std::string_view kPlain[] = {"outputs", "output",   "stats", "statistics",
                                           "value",   "children", "data",  "tensors",
                                           "layers",  "modules"};
    return is_one_of(kPlain, key);
  }

  static std::string_view name_in(const Json& value) {
    for (const Json::Member& member : value.object())
      if (is_one_of(kNames, member.key) && member.value.is_string()) return member.value.string();
    return "";
  }

  void take_member(const Json::Member& member, Row& row, Where& where) {
    const std::string_view meant = meant_by(member.key);
    const std::optional<double> number = number_told(member.value);
    if (member.key == "dtype") row.dtype = member.value.string();
    if (!meant.empty() && number)
      take_value(meant, *number,
                 member.value.is_string() ? member.value.string() : shortest(*number), row);
    else if (member.value.is_string())
      take_where(member.key, member.value.string(), where);
    else if (const std::optional<int64_t> whole = member.value.i64())
      take_where(member.key, std::to_string(*whole), where);
  }

  static std::string shortest(double number) { return fmt::format("{}", number); }

  void take_value(std::string_view meant, double number, std::string_view text, Row& row) {
    row.values.emplace(meant, number);
    digits_ = std::max(digits_, digits_of(text));
  }

  Result<void> keep(std::string name, Row row) {
    if (row.values.size() < kStatisticsMin || name.empty()) return {};
    TRY(list_.make_room(rows_.size()));
    constexpr std::string_view kTop = " (top-level)";
    if (name.ends_with(kTop)) name.resize(name.size() - kTop.size());
    row.name = std::move(name);
    rows_.push_back(std::move(row));
    return {};
  }

  static std::string labels_of(const Row& row) {
    std::string labels;
    for (const auto& [label, number] : row.values)
      labels += fmt::format("{}{}", labels.empty() ? "" : ", ", label);
    return labels;
  }

  // As exact as the elements, or as what is printed of them: 3 digits are about what bf16 tells,
  // 5 what f16 does.
  DType stored_as(const Row& row, const std::vector<double>& numbers) const {
    constexpr std::size_t kDigitsOfBrain = 3, kDigitsOfHalf = 5;
    if (digits_ <= kDigitsOfBrain) return DType::bf16;
    const DType told = type_of_statistics(row.dtype, numbers);
    if (told != DType::f32 || digits_ > kDigitsOfHalf) return told;
    const DType half = type_of_statistics("float16", numbers);
    return half == DType::f16 ? half : DType::bf16;
  }

  StatisticsList list_;
  std::vector<Row> rows_;
  std::size_t digits_ = 0;  // The most of any number.
};

// An object a line, or one document.
Result<void> read_json(std::string_view text, Table& table) {
  const Result<Json> whole = Json::parse(text);
  if (whole.ok()) return table.read(whole.value(), "", 0);
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
    const Result<Json> row = Json::parse(line);
    if (!row.ok()) return whole.error();
    TRY(table.read(row.value(), "", 0));
  }
  return {};
}

Result<Catalog> open(const Input& input) {
  const Bytes file = TRY(input.source.open());
  if (!recognises(file)) return Error("no table of statistics in it");
  if (file.size() > input.limits.json_bytes_max)
    return limit_hit("json", fmt::format("a table of {}", human_bytes(file.size())));
  std::string_view text = as_text(file.view);
  text.remove_prefix(text.find_first_not_of(" \t\r\n"));
  Table table(input.limits);
  const std::optional<char> separator = separator_in(text);
  if (separator && text[0] != '{' && text[0] != '[')
    TRY(table.read_lines(text, *separator));
  else
    TRY(read_json(text, table));
  return table.take();
}

}  // namespace

constinit const Format formats::statistics_table = {
    .name = "stats-table",
    .summary = "tables of statistics of tensors: CSV or JSON with name, mean, std, min, max",
    .extensions = ".csv .tsv .json .jsonl",
    .recognises = recognises,
    .open = open,
};

}  // namespace tensordiff
