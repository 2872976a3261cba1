// tensordiff batch LIST.yaml, or two folders: many comparisons, one summary.

#include <fmt/format.h>

#include "base/byte_source.h"
#include "base/text.h"
#include "cli/batch_list.h"
#include "cli/batch_state.h"
#include "cli/command.h"
#include "cli/comparing.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "cli/values.h"

namespace tensordiff {
namespace {

Result<void> apply_output(Settings& settings, std::string_view name) {
  settings.output = kBatchOutputs[TRY(parse_word(name, kBatchOutputs))];
  return {};
}

constexpr Option kOptions[] = {
    {"-o,--output", "FORMAT", "text (default), json, csv, markdown, html or junit", apply_output},
    {"--resume", "FILE", "save progress in this file and resume from it",
     [](Settings& settings, std::string_view file) -> Result<void> {
       settings.resume = file;
       return {};
     }},
    {"--include-charts", "", "add charts to Markdown (HTML always has them)",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.render.charts = true;
       return {};
     }},
};
constexpr OptionGroup kGroup = {"output", kOptions};
constexpr const OptionGroup* kGroups[] = {
    &kGroup,
    &option_groups::input,
    &option_groups::pairing,
    &option_groups::tolerance,
    &option_groups::what,
    &option_groups::diagnosis,
    &option_groups::analyses,
    &option_groups::speed,
};

Result<std::vector<BatchRun>> runs_of(const std::vector<std::string>& inputs) {
  if (inputs.size() == 2) return match_folders(inputs[0], inputs[1]);
  if (inputs.size() != 1) return Error("batch needs a list in YAML, or two folders");
  const Bytes bytes = TRY(map_file(inputs[0]).in(printable(inputs[0])));
  return parse_batch(as_text(bytes.view), inputs[0]).in(printable(inputs[0]));
}

BatchRow troubled(const std::string& message) {
  BatchRow row;
  row.verdict = Conclusion::trouble;
  row.status = kTrouble;
  row.message = message;
  return row;
}

// What has no partner is a difference, as a tensor without one is.
BatchRow alone(const BatchRun& run) {
  BatchRow row;
  row.verdict = Conclusion::different;
  row.status = kDifferent;
  row.message = run.b.empty() ? "only in A" : "only in B";
  return row;
}

// A run that fails is a row that says so; the others go on.
BatchRow compared(const BatchRun& run, const Settings& common) {
  if (run.a.empty() || run.b.empty()) return alone(run);
  Settings settings = common;
  settings.output = "text";
  if (const Result<void> applied = apply_config(run.options, commands::compare, settings);
      !applied.ok())
    return troubled(applied.error().message());
  if (const Result<void> fit = check_inputs(settings, {run.a, run.b}); !fit.ok())
    return troubled(fit.error().message());
  ProgressLine progress(!settings.quiet);
  const Result<Report> report = compare_inputs(
      settings, {run.a, run.b},
      [&](uint64_t done, uint64_t total) { progress.update(done, total, run.name); });
  if (!report.ok()) return troubled(report.error().message());
  BatchRow row = batch_row(report.value());
  row.status = exit_status(report.value(), settings);
  return row;
}

Result<std::vector<BatchRow>> compare_all(const std::vector<BatchRun>& runs,
                                          const Settings& settings) {
  BatchState state = TRY(BatchState::open(settings.resume).in(printable(settings.resume)));
  std::vector<BatchRow> rows;
  for (const BatchRun& run : runs) {
    const std::string stamp = stamp_of(run, settings.given);
    if (std::optional<BatchRow> done = state.find(run.name, stamp)) {
      rows.push_back(std::move(*done));
      continue;
    }
    BatchRow row = compared(run, settings);
    row.name = run.name;
    row.a = run.a;
    row.b = run.b;
    TRY(state.add(stamp, row));
    rows.push_back(std::move(row));
  }
  return rows;
}

int run_batch(const Settings& settings, const std::vector<std::string>& inputs) {
  const Result<std::vector<BatchRun>> runs = runs_of(inputs);
  if (!runs.ok()) return fail(runs.error());
  if (runs.value().empty()) return fail(Error("there is nothing to compare"));
  const Result<std::vector<BatchRow>> rows = compare_all(runs.value(), settings);
  if (!rows.ok()) return fail(rows.error());

  RenderOptions options = settings.render;
  options.color = wants_color(settings);
  options.width = output_width();
  const bool shown = !settings.quiet || !settings.out.empty();
  const std::string text = shown ? render_batch(rows.value(), settings.output, options) : "";
  if (const Result<void> written = deliver(text, settings); !written.ok())
    return fail(written.error());
  return worst_exit(rows.value());
}

}  // namespace

constinit const Command commands::batch = {
    .name = "batch",
    .usage = "tensordiff batch LIST.yaml | FOLDER_A FOLDER_B [options]",
    .summary = "run many comparisons; print one summary",
    .groups = kGroups,
    .run = run_batch,
};

}  // namespace tensordiff
