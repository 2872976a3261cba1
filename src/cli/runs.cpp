// tensordiff runs A1 … An: which of many runs are the same to the bit, and where they part first.

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "cli/values.h"
#include "report/style.h"
#include "report/table.h"
#include "report/wording.h"
#include "runs/runs.h"

namespace tensordiff {
namespace {

constexpr std::size_t kRowsMax = 20;  // Of tensors that are not the same in all runs; -v: all.

constexpr Option kOptions[] = {
    {"--save-noise", "FILE", "write the noise floor of each tensor, for --noise",
     [](Settings& settings, std::string_view path) -> Result<void> {
       settings.save_noise = path;
       return {};
     }},
    {"-o,--output", "FORMAT", "text (default) or json", set_text_or_json},
    {"-v,--verbose", "", "show a row for each tensor",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.render.verbose = true;
       return {};
     }},
    {"--exit-zero", "", "exit with 0 even if runs differ",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.exit_zero = true;
       return {};
     }},
};
constexpr OptionGroup kGroup = {"output", kOptions};
constexpr const OptionGroup* kGroups[] = {&option_groups::input, &option_groups::pairing, &kGroup};

// "class 1: 3 runs: a.pt, b.pt, c.pt" for each class.
std::string class_lines(const RunsComparison& runs) {
  std::string out;
  for (std::size_t each = 0; each < runs.classes; ++each) {
    std::vector<std::string> names;
    for (std::size_t run = 0; run < runs.paths.size(); ++run)
      if (runs.class_of[run] == each) names.push_back(printable(runs.paths[run]));
    out += fmt::format("class {:<6}{}: {}\n", each + 1, counted(names.size(), "run"),
                       fmt::join(names, ", "));
  }
  return out;
}

std::string split_line(const RunsComparison& runs) {
  if (!runs.first_split) return "";
  const RunsTensor& tensor = runs.tensors[*runs.first_split];
  const std::size_t before = *runs.first_split;
  const std::string rest =
      before == 0   ? "it is the first tensor"
      : before == 1 ? "the tensor before it is the same"
                    : fmt::format("all {} tensors before it are the same", human_count(before));
  return fmt::format("first split {}: {} different results; {}\n", printable(tensor.name),
                     tensor.distinct, rest);
}

std::string table_of(const RunsComparison& runs, const Settings& settings) {
  using enum Column::Side;
  Table table({{"tensor"}, {"results", right}, {"noise floor", right}, {"max |Δ|", right}});
  std::size_t rows = 0, more = 0;
  for (const RunsTensor& tensor : runs.tensors) {
    if (tensor.distinct == 1 && !settings.render.verbose) continue;
    if (rows++ >= kRowsMax && !settings.render.verbose) {
      ++more;
      continue;
    }
    table.add({{printable(tensor.name)},
               {human_count(tensor.distinct)},
               {human_number(tensor.rel_l2)},
               {human_number(tensor.max_abs)}});
  }
  if (table.empty()) return "";
  std::string out = "\n" + table.render(Style(wants_color(settings)), output_width());
  if (more > 0) out += fmt::format("  and {} more; -v shows all\n", more);
  return out;
}

std::string text_of(const RunsComparison& runs, const Settings& settings) {
  const Style style(wants_color(settings));
  const bool same = runs.classes == 1;
  std::string out =
      fmt::format("{}  {}, {}\n", style(same ? Tone::good : Tone::bad, same ? "SAME" : "DIFFERENT"),
                  counted(runs.paths.size(), "run"),
                  same ? "all bit-identical" : fmt::format("{} bitwise classes", runs.classes));
  out += split_line(runs);
  if (!same) out += class_lines(runs);
  for (const std::string& note : runs.notes) out += "note        " + note + "\n";
  for (const std::string& missing : runs.missing) out += "missing     " + missing + "\n";
  return out + table_of(runs, settings);
}

std::string json_of(const RunsComparison& runs) {
  JsonWriter json(JsonWriter::Style::indented);
  json.begin_object().member("schema", "tensordiff.runs/1").member("runs", runs.paths);
  json.key("class_of").begin_array();
  for (const std::size_t each : runs.class_of) json.value(uint64_t{each});
  json.end_array().member("classes", uint64_t{runs.classes});
  json.key("first_split");
  if (runs.first_split)
    json.value(runs.tensors[*runs.first_split].name);
  else
    json.null();
  json.key("tensors").begin_array();
  for (const RunsTensor& tensor : runs.tensors) {
    json.begin_object().member("name", tensor.name).member("results", uint64_t{tensor.distinct});
    json.member("rel_l2", tensor.rel_l2).member("max_abs", tensor.max_abs);
    json.key("class_of").begin_array();
    for (const std::size_t each : tensor.classes) json.value(uint64_t{each});
    json.end_array().end_object();
  }
  json.end_array().member("missing", runs.missing).member("notes", runs.notes).end_object();
  return json.take() + "\n";
}

int run(const Settings& settings, const std::vector<std::string>& inputs) {
  if (inputs.size() < 2) return fail(Error("runs needs two runs or more"));
  const Result<RunsComparison> runs = compare_runs(inputs, settings.request);
  if (!runs.ok()) return fail(runs.error());
  if (!settings.save_noise.empty()) {
    Settings file = settings;
    file.out = settings.save_noise;
    const Result<void> saved =
        deliver(noise_text(runs.value().floor(), runs.value().paths.size()), file);
    if (!saved.ok()) return fail(saved.error());
  }
  const std::string text =
      settings.output == "json" ? json_of(runs.value()) : text_of(runs.value(), settings);
  const bool shown = !settings.quiet || !settings.out.empty();
  const Result<void> written = deliver(shown ? text : "", settings);
  if (!written.ok()) return fail(written.error());
  const bool same = runs.value().classes == 1 && runs.value().missing.empty();
  return same || settings.exit_zero ? kSame : kDifferent;
}

}  // namespace

constinit const Command commands::runs = {
    .name = "runs",
    .usage = "tensordiff runs A1 A2 A3... [options]",
    .summary = "group bit-identical runs; measure the noise between the others",
    .groups = kGroups,
    .run = run,
};

}  // namespace tensordiff
