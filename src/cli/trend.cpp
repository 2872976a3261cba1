// tensordiff trend C1 C2 C3…: checkpoints of one training run, in order.

#include <algorithm>

#include "analyze/trend.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "cli/values.h"
#include "formats/format.h"
#include "match/filter.h"
#include "report/trend_report.h"

namespace tensordiff {
namespace {

Result<void> apply_output(Settings& settings, std::string_view name) {
  constexpr std::string_view kNames[] = {"text", "json", "csv", "markdown", "html"};
  settings.output = kNames[TRY(parse_word(name, kNames))];
  return {};
}

constexpr Option kOptions[] = {
    {"-o,--output", "FORMAT", "text (default), json, csv, markdown or html", apply_output},
    {"--include-charts", "", "add charts to Markdown (HTML always has them)",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.render.charts = true;
       return {};
     }},
    {"--brief", "", "print only the verdict line",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.render.brief = true;
       return {};
     }},
    {"-v,--verbose", "", "show a row for each checkpoint and group",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.render.verbose = true;
       return {};
     }},
    {"--exit-zero", "", "exit with 0 even if training diverges",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.exit_zero = true;
       return {};
     }},
};
constexpr OptionGroup kGroup = {"output", kOptions};
constexpr const OptionGroup* kGroups[] = {&option_groups::input, &kGroup};

Result<std::vector<Catalog>> open_all(const Settings& settings,
                                      const std::vector<std::string>& inputs) {
  const Request& request = settings.request;
  const NameFilter filter = TRY(NameFilter::make(request.paths, request.ignore_regex));
  const std::string filters = filter_text(request.paths, request.ignore_regex);
  std::vector<Catalog> checkpoints;
  for (const std::string& input : inputs) {
    checkpoints.push_back(TRY(open_model(input, settings.open)));
    TRY(filter.apply(checkpoints.back()));
  }
  if (std::ranges::all_of(checkpoints, [](const Catalog& each) { return each.tensors.empty(); }))
    return Error("0 tensors selected: {}", filters.empty() ? "the files hold none" : filters);
  return checkpoints;
}

std::string rendered(const Trend& trend, const Settings& settings) {
  RenderOptions options = settings.render;
  options.color = wants_color(settings);
  options.width = output_width();
  if (settings.output == "json") return trend_json(trend);
  if (settings.output == "csv") return trend_csv(trend);
  if (settings.output == "markdown") return doc::markdown_of(trend_document(trend), options.charts);
  if (settings.output == "html") return doc::html_of(trend_document(trend));
  return trend_text(trend, options);
}

int run(const Settings& settings, const std::vector<std::string>& inputs) {
  if (inputs.size() < 2) return fail(Error("trend needs two checkpoints or more, in order"));
  const Result<std::vector<Catalog>> checkpoints = open_all(settings, inputs);
  if (!checkpoints.ok()) return fail(checkpoints.error());
  uint64_t bytes = 0;
  for (const Catalog& checkpoint : checkpoints.value()) bytes += checkpoint.bytes();
  const Result<Trend> trend = [&] {
    ProgressLine progress(!settings.quiet);
    // It counts elements; bytes are what people know.
    return measure_trend(checkpoints.value(), [&](uint64_t done, uint64_t total) {
      const double share = total ? static_cast<double>(done) / static_cast<double>(total) : 1;
      progress.update(static_cast<uint64_t>(share * static_cast<double>(bytes)), bytes);
    });
  }();
  if (!trend.ok()) return fail(trend.error());
  const bool shown = !settings.quiet || !settings.out.empty();
  const Result<void> written = deliver(shown ? rendered(trend.value(), settings) : "", settings);
  if (!written.ok()) return fail(written.error());
  return trend.value().course == Course::diverging && !settings.exit_zero ? kDifferent : kSame;
}

}  // namespace

constinit const Command commands::trend = {
    .name = "trend",
    .usage = "tensordiff trend C1 C2 C3... [options]",
    .summary = "follow the checkpoints of a training run: updates, angles, norms",
    .groups = kGroups,
    .run = run,
};

}  // namespace tensordiff
