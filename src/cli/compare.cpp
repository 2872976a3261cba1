// tensordiff compare A B: pairs the tensors of two inputs, compares them and shows the result.

#include <fmt/format.h>

#include <algorithm>

#include "analyze/analysis.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "pipeline.h"

namespace tensordiff {
namespace {

constexpr const OptionGroup* kGroups[] = {
    &option_groups::input,  &option_groups::pairing,   &option_groups::tolerance,
    &option_groups::what,   &option_groups::diagnosis, &option_groups::analyses,
    &option_groups::output, &option_groups::speed,
};

// What was paired, for --pairs to read. Parts of fused tensors are found again without it.
Result<void> save_pairs(const Report& report, const Settings& settings) {
  if (settings.save_pairs.empty()) return {};
  std::vector<NamePair> pairs;
  for (const PairRow& row : report.pairs)
    if (row.matched_by != matchers::fused.name) pairs.push_back({row.a.name, row.b.name});
  Settings to_file = settings;
  to_file.out = settings.save_pairs;
  return deliver(pairs_text(pairs), to_file);
}

const Renderer& renderer_of(const Settings& settings) {
  if (settings.stats && settings.output == "text") return renderers::stats;
  for (const Renderer* renderer : renderers::kAll)
    if (renderer->name == settings.output) return *renderer;
  return renderers::text;
}

int exit_status(const Report& report, const Settings& settings) {
  const std::string_view verdict = report.summary.verdict;
  const bool alarm = std::ranges::any_of(
      report.analyses, [](const Answer& answer) { return answer.alarm.has_value(); });
  if ((verdict == "same" || verdict == "close") && !alarm) return kSame;
  if (verdict != "trouble") return settings.exit_zero ? kSame : kDifferent;
  return kTrouble;
}

Result<void> check_inputs(const Settings& settings, const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs)
    if (input == "-") return Error("'-': reading from standard input is not supported");
  if (inputs.empty() || inputs.size() > 2)
    return Error("needs one or two inputs, has {}", inputs.size());
  const Request& request = settings.request;
  if (!request.analyze.wanted.empty() && (inputs.size() == 1 || request.shape_only))
    return Error("{} needs two inputs and their values", request.analyze.wanted[0]->flag);
  return {};
}

int run(const Settings& settings, const std::vector<std::string>& inputs) {
  if (const Result<void> fit = check_inputs(settings, inputs); !fit.ok()) return fail(fit.error());
  const Renderer& renderer = renderer_of(settings);

  Request request = settings.request;
  request.a = inputs[0];
  if (inputs.size() == 2) request.b = inputs[1];
  request.open = settings.open;
  request.unpaired_stats = renderer.unpaired_stats;

  const Result<Report> report = [&] {
    ProgressLine progress(!settings.quiet);
    if (progress.active())
      request.progress = [&](uint64_t done, uint64_t total) { progress.update(done, total); };
    return compare_models(request);
  }();
  if (!report.ok()) return fail(report.error());
  if (const Result<void> saved = save_pairs(report.value(), settings); !saved.ok())
    return fail(saved.error());

  RenderOptions options = settings.render;
  options.color = wants_color(settings);
  options.width = output_width();
  const bool shown = !settings.quiet || !settings.out.empty();
  const std::string text = shown ? renderer.render(report.value(), options) : "";
  if (const Result<void> written = deliver(text, settings); !written.ok())
    return fail(written.error());
  return exit_status(report.value(), settings);
}

}  // namespace

constinit const Command commands::compare = {
    .name = "compare",
    .usage = "tensordiff [compare] A [B] [options]",
    .summary = "compare two models, dumps, folders or archives, or the tensors of one",
    .groups = kGroups,
    .run = run,
};

}  // namespace tensordiff
