// tensordiff show FILE [NAME]: what is in a file; with NAME, one tensor with statistics and values.

#include <fmt/format.h>

#include <algorithm>

#include "base/parallel.h"
#include "base/suggest.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/comparing.h"
#include "cli/show_text.h"
#include "cli/tensor_facts.h"
#include "cli/terminal.h"
#include "cli/values.h"
#include "dumps/layout.h"
#include "report/json_values.h"

namespace tensordiff {
namespace {

constexpr uint64_t kValuesOfOne = 32;  // Shown of a tensor that was named.

constexpr Option kOptions[] = {
    {"--stats", "", "show mean, std, min, max, NaN and Inf counts of each tensor",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.stats = true;
       return {};
     }},
    {"--values", "N", "show the first N values",
     [](Settings& settings, std::string_view text) -> Result<void> {
       settings.values = TRY(parse_count(text));
       return {};
     }},
    {"--slice", "SPEC", "limit --values and --find to a slice: \"0,3:8,:\"",
     [](Settings& settings, std::string_view text) -> Result<void> {
       settings.slice = text;
       return {};
     }},
    {"--find", "WHAT", "find elements \">1e4\", \"<=-3\", \"=0\", nan or inf",
     [](Settings& settings, std::string_view text) -> Result<void> {
       settings.find = TRY(parse_condition(text));
       return {};
     }},
    {"--layout", "NAME", "layout of the dump, or none (default: detect it)",
     [](Settings& settings, std::string_view name) -> Result<void> {
       settings.request.layout = name;
       return {};
     }},
    {"-o,--output", "FORMAT", "text (default) or json", set_text_or_json},
};

constexpr OptionGroup kGroup = {"what to show", kOptions};
constexpr const OptionGroup* kGroups[] = {&kGroup};

// Keeps one tensor of the catalog. The error names some that are there.
Result<void> keep_named(Catalog& catalog, const std::string& name) {
  constexpr std::size_t kExamples = 5;
  std::string known;
  for (std::size_t i = 0; i < std::min(catalog.tensors.size(), kExamples); ++i)
    known += fmt::format("{}'{}'", i ? ", " : "", printable(catalog.tensors[i].name, 60));
  if (catalog.tensors.size() > kExamples) known += ", …";
  std::vector<std::string> names;
  for (const Tensor& tensor : catalog.tensors) names.push_back(tensor.name);
  const std::vector<std::string_view> words(names.begin(), names.end());
  const std::string meant(nearest_word(name, words));
  std::erase_if(catalog.tensors, [&](const Tensor& tensor) { return tensor.name != name; });
  if (!catalog.tensors.empty()) return {};
  if (!meant.empty())
    return Error("no tensor '{}'; did you mean '{}'?", printable(name, 80), printable(meant, 80));
  return Error("no tensor '{}'; there is {}", printable(name, 80), known.empty() ? "none" : known);
}

void write_elements(JsonWriter& json, DType dtype, const std::vector<std::byte>& elements) {
  json.begin_array();
  for (std::size_t at = 0; at < elements.size(); at += item_bytes(dtype))
    write_element(json, dtype, elements.data() + at);
  json.end_array();
}

void write_found(JsonWriter& json, const TensorFacts& facts) {
  const View& view = facts.tensor->view;
  const std::size_t size = item_bytes(view.dtype);
  json.begin_object().member("count", facts.found).key("first").begin_array();
  for (std::size_t i = 0; i < facts.found_positions.size(); ++i) {
    json.begin_object().member("index", index_at(view.shape, facts.found_positions[i]));
    json.key("value");
    write_element(json, view.dtype, facts.found_values.data() + i * size);
    json.end_object();
  }
  json.end_array().end_object();
}

// "model.layers.N.mlp": what names of all layers have in common.
std::string without_numbers(std::string_view name) {
  std::string text;
  for (const char c : name) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit)
      text += c;
    else if (!text.ends_with('N'))
      text += 'N';
  }
  return text;
}

// What the layout takes tensors for, where their names say something else: once for all layers.
std::vector<std::string> meanings_of(const Catalog& dump) {
  std::vector<std::string> lines;
  for (const Tensor& tensor : dump.tensors) {
    if (tensor.known_as.empty()) continue;
    // A number behind the last dot says which output it is.
    const std::string name = printable(tensor.name);
    const std::size_t dot = name.rfind('.');
    const std::size_t end = dot == std::string::npos ? name.size() : dot;
    std::string line = fmt::format("{}{} is taken for {}", without_numbers(name.substr(0, end)),
                                   name.substr(end), without_numbers(printable(tensor.known_as)));
    if (std::ranges::find(lines, line) == lines.end()) lines.push_back(std::move(line));
  }
  return lines;
}

// "forward-hook: compared as 44 tensors of 24 tokens", and what it takes for what; empty where the
// layout is not known.
std::string layout_text(const Catalog& dump, const std::vector<std::string>& notes) {
  constexpr std::size_t kLinesMax = 24;  // Of one screen.
  if (dump.layout.empty()) return "";
  std::string text = fmt::format("{}: compared as {} tensors", dump.layout, dump.tensors.size());
  if (!dump.tokens.empty()) text += fmt::format(" of {} tokens", dump.tokens.size());
  std::vector<std::string> lines = notes;
  for (std::string& line : meanings_of(dump)) lines.push_back(std::move(line));
  for (std::size_t i = 0; i < std::min(lines.size(), kLinesMax); ++i)
    text += fmt::format("\n        {}", lines[i]);
  if (lines.size() > kLinesMax)
    text += fmt::format("\n        and {} more", lines.size() - kLinesMax);
  return text;
}

void write_layout(JsonWriter& json, const Catalog& dump) {
  if (dump.layout.empty()) return;
  json.key("layout").begin_object().member("name", dump.layout);
  json.member("tensors", static_cast<uint64_t>(dump.tensors.size()));
  json.member("tokens", static_cast<uint64_t>(dump.tokens.size()));
  json.key("taken_for").begin_object();
  for (const Tensor& tensor : dump.tensors)
    if (!tensor.known_as.empty()) json.member(tensor.name, tensor.known_as);
  json.end_object().end_object();
}

std::string show_json(const Catalog& catalog, const Catalog& dump,
                      const std::vector<TensorFacts>& all, const FactsWanted& wanted) {
  JsonWriter json(JsonWriter::Style::indented);
  json.begin_object().member("path", catalog.path).member("format", catalog.format);
  write_layout(json, dump);
  json.key("tensors").begin_array();
  for (const TensorFacts& facts : all) {
    const Tensor& tensor = *facts.tensor;
    json.begin_object().member("name", tensor.name).member("dtype", name_of(tensor.view.dtype));
    json.member("shape", tensor.view.shape).member("elements", tensor.elements());
    json.member("bytes", tensor.bytes());
    if (facts.stats) {
      json.key("stats");
      write_stats(json, *facts.stats);
    }
    if (wanted.values > 0 && facts.fault.empty()) {
      json.key("values");
      write_elements(json, tensor.view.dtype, facts.values);
    }
    if (wanted.find && facts.fault.empty()) {
      json.key("found");
      write_found(json, facts);
    }
    if (!facts.fault.empty()) json.member("message", facts.fault);
    json.end_object();
  }
  json.end_array().key("problems");
  write_problems(json, catalog.problems);
  json.end_object();
  return json.take() + "\n";
}

int run(const Settings& settings, const std::vector<std::string>& inputs) {
  if (inputs.empty() || inputs.size() > 2 || are_shards(inputs))
    return fail(Error("show needs a file and, optionally, the name of a tensor in it{}",
                      are_shards(inputs) ? kShardsOfOne : ""));
  const bool one = inputs.size() == 2;
  Result<Catalog> opened = open_model(inputs[0], settings.open);
  if (!opened.ok()) return fail(opened.error());
  Catalog& catalog = opened.value();
  // Tensors are shown as they are stored; the layout says what they are compared as.
  Catalog dump = catalog;
  const auto read = arrange(dump, settings.request.layout);
  if (!read.ok()) return fail(read.error());
  catalog.layout = layout_text(dump, read.value());
  if (one)
    if (Result<void> kept = keep_named(catalog, inputs[1]); !kept.ok())
      return fail(std::move(kept).error().in(inputs[0]));

  FactsWanted wanted{
      .stats = settings.stats || one, .slice = settings.slice, .find = settings.find};
  wanted.values = settings.values.value_or(one && !settings.find ? kValuesOfOne : 0);
  std::vector<TensorFacts> facts(catalog.tensors.size());
  for_each_index(facts.size(),
                 [&](std::size_t i) { facts[i] = gather_facts(catalog.tensors[i], wanted); });

  const bool as_json = settings.output == "json";
  const ShowLook look{wants_color(settings), output_width(), one};
  const std::string text =
      as_json ? show_json(catalog, dump, facts, wanted) : show_text(catalog, facts, wanted, look);
  if (const Result<void> written = deliver(text, settings); !written.ok())
    return fail(written.error());
  // A tensor that could not be read is trouble, although all others were shown.
  const bool faulty =
      std::ranges::any_of(facts, [](const TensorFacts& each) { return !each.fault.empty(); });
  return faulty ? kTrouble : kSame;
}

}  // namespace

constinit const Command commands::show = {
    .name = "show",
    .usage = "tensordiff show FILE [NAME] [options]",
    .summary = "list the tensors of a file; with NAME, its statistics and values",
    .groups = kGroups,
    .run = run,
};

}  // namespace tensordiff
