#include "cli/show_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "report/table.h"
#include "report/wording.h"

namespace tensordiff {
namespace {

std::string number_or_dash(const std::optional<double>& number) {
  return number ? short_number(*number) : "–";
}

Cell count_cell(uint64_t count) { return {human_count(count), count ? Tone::bad : Tone::dim}; }

std::vector<Cell> cells_of(const TensorFacts& facts, const FactsWanted& wanted) {
  const Tensor& tensor = *facts.tensor;
  std::vector<Cell> cells = {{printable(tensor.name)},
                             {std::string(name_of(tensor.view.dtype)), Tone::dim},
                             {shape_text(tensor.view.shape)},
                             {human_count(tensor.elements())},
                             {human_bytes(tensor.bytes()), Tone::dim}};
  if (facts.stats) {
    const Stats& stats = *facts.stats;
    for (const auto& number : {stats.mean, stats.std, stats.min, stats.max})
      cells.push_back({number_or_dash(number)});
    cells.push_back(count_cell(stats.nan));
    cells.push_back(count_cell(stats.inf));
  }
  cells.resize(11);
  cells.push_back(wanted.find && facts.fault.empty() ? Cell{human_count(facts.found)} : Cell{});
  return cells;
}

std::vector<std::string> remarks_of(const TensorFacts& facts) {
  std::vector<std::string> out;
  if (!facts.fault.empty()) out.push_back("cannot be shown: " + printable(facts.fault, 1000));
  if (facts.stats) {
    const std::string what = character(*facts.stats, facts.tensor->view.shape);
    if (!what.empty()) out.push_back(what);
  }
  return out;
}

std::string values_line(const TensorFacts& facts, std::size_t count) {
  std::string text;
  const DType dtype = facts.tensor->view.dtype;
  for (std::size_t i = 0; i < count; ++i)
    text += (i ? " " : "") + element_text(dtype, facts.values.data() + i * item_bytes(dtype));
  return text;
}

std::string found_lines(const TensorFacts& facts, std::string_view margin) {
  std::string out;
  const View& view = facts.tensor->view;
  const std::size_t size = item_bytes(view.dtype);
  for (std::size_t i = 0; i < facts.found_positions.size(); ++i)
    out += fmt::format("{}{}  {}\n", margin,
                       shape_text(index_at(view.shape, facts.found_positions[i])),
                       element_text(view.dtype, facts.found_values.data() + i * size));
  const uint64_t rest = facts.found - facts.found_positions.size();
  if (rest > 0) out += fmt::format("{}… and {} more\n", margin, human_count(rest));
  return out;
}

std::string tensor_table(const std::vector<TensorFacts>& all, const FactsWanted& wanted,
                         const ShowLook& look) {
  using enum Column::Side;
  Table table({{"name"},
               {"dtype"},
               {"shape"},
               {"elements", right, 4},
               {"bytes", right, 3},
               {"mean", right},
               {"std", right},
               {"min", right, 1},
               {"max", right, 1},
               {"nan", right},
               {"inf", right},
               {"found", right}});
  for (const TensorFacts& facts : all) {
    std::vector<std::string> remarks = remarks_of(facts);
    const std::size_t size = item_bytes(facts.tensor->view.dtype);
    if (!facts.values.empty()) remarks.push_back(values_line(facts, facts.values.size() / size));
    table.add(cells_of(facts, wanted), std::move(remarks));
  }
  return table.empty() ? "" : table.render(Style(look.color), look.width);
}

// The index of a row of values: "[0, 3, :]".
std::string row_label(const TensorFacts& facts, uint64_t element) {
  const Box& box = facts.box;
  if (box.shape.empty()) return "[]";
  Shape index = index_at(box.shape, element);
  std::string out = "[";
  for (std::size_t axis = 0; axis + 1 < index.size(); ++axis)
    out += fmt::format("{}, ", box.origin[axis] + index[axis]);
  return out + fmt::format("{}:]", box.origin.back() + index.back());
}

// Values below each other by column, a line for each row of the last axis, or more where it is
// longer than the terminal is wide.
std::string value_grid(const TensorFacts& facts, std::size_t width) {
  const DType dtype = facts.tensor->view.dtype;
  const std::size_t size = item_bytes(dtype);
  const std::size_t count = facts.values.size() / size;
  if (count == 0) return "";
  std::vector<std::string> texts;
  std::size_t cell = 0;
  for (std::size_t i = 0; i < count; ++i) {
    texts.push_back(element_text(dtype, facts.values.data() + i * size));
    cell = std::max(cell, texts.back().size());
  }
  const std::size_t row = facts.box.shape.empty() ? 1 : facts.box.shape.back();
  const std::size_t label =
      std::max(columns(row_label(facts, count - 1)), columns(row_label(facts, 0)));
  const std::size_t per_line =
      std::max<std::size_t>(1, (width - std::min(width, label + 2)) / (cell + 2));
  std::string out;
  for (std::size_t i = 0; i < count;) {
    out += fmt::format("  {:<{}}", row_label(facts, i), label);
    const std::size_t end = std::min({count, i + per_line, (i / row + 1) * row});
    for (; i < end; ++i) out += fmt::format("  {:>{}}", texts[i], cell);
    out += "\n";
  }
  return out;
}

std::string at_length(const TensorFacts& facts, const FactsWanted& wanted, const ShowLook& look) {
  const Style style(look.color);
  const Tensor& tensor = *facts.tensor;
  std::string out = fmt::format("{}  {} {}, {}, {}\n", style(Tone::bold, printable(tensor.name)),
                                name_of(tensor.view.dtype), shape_text(tensor.view.shape),
                                counted(tensor.elements(), "element"), human_bytes(tensor.bytes()));
  if (facts.stats) {
    const Stats& stats = *facts.stats;
    out += fmt::format("  mean {}  std {}  min {}  max {}  norm {}\n", number_or_dash(stats.mean),
                       number_or_dash(stats.std), number_or_dash(stats.min),
                       number_or_dash(stats.max), number_or_dash(stats.norm));
    out += fmt::format("  {} zeros, {} NaN, {} infinite\n", human_count(stats.zeros),
                       human_count(stats.nan), human_count(stats.inf));
  }
  for (const std::string& remark : remarks_of(facts)) out += "  " + remark + "\n";
  if (!facts.values.empty()) {
    const uint64_t count = facts.values.size() / item_bytes(tensor.view.dtype);
    const std::string of =
        wanted.slice.empty() ? "" : fmt::format(" [{}]", printable(wanted.slice));
    out += fmt::format("\nvalues{}: {} of {}\n", of, human_count(count),
                       human_count(facts.box.elements()));
    out += value_grid(facts, look.width);
  }
  if (wanted.find && facts.fault.empty())
    out += fmt::format("\nfound: {}\n", human_count(facts.found)) + found_lines(facts, "  ");
  return out;
}

}  // namespace

std::string show_text(const Catalog& catalog, const std::vector<TensorFacts>& all,
                      const FactsWanted& wanted, const ShowLook& look) {
  const Style style(look.color);
  std::string out;
  if (look.at_length) {
    for (const TensorFacts& facts : all) out += at_length(facts, wanted, look);
  } else {
    out +=
        fmt::format("{}  {}, {}, {} elements, {}\n\n", style(Tone::bold, printable(catalog.path)),
                    catalog.format, counted(catalog.tensors.size(), "tensor"),
                    human_count(catalog.elements()), human_bytes(catalog.bytes()));
    if (!catalog.layout.empty()) out.insert(out.size() - 1, "layout  " + catalog.layout + "\n");
    out += tensor_table(all, wanted, look);
  }
  for (const Problem& problem : catalog.problems)
    out += fmt::format("{}  {}: {}\n", style(Tone::trouble, "problem"), printable(problem.where),
                       printable(problem.message, 1000));
  return out;
}

}  // namespace tensordiff
