#include "cli/comparing.h"

#include <algorithm>

#include "analyze/analysis.h"
#include "base/text.h"
#include "cli/command.h"
#include "pipeline.h"

namespace tensordiff {
namespace {

// What a full report is written as: the end of the file's name tells, else Markdown.
const Renderer& full_report(const std::string& file) {
  constexpr std::pair<std::string_view, const Renderer*> kEndings[] = {
      {".html", &renderers::html}, {".htm", &renderers::html},  {".json", &renderers::report},
      {".csv", &renderers::csv},   {".xml", &renderers::junit}, {".yaml", &renderers::yaml},
      {".txt", &renderers::text},
  };
  for (const auto& [ending, renderer] : kEndings)
    if (lower(file).ends_with(ending)) return *renderer;
  return renderers::markdown;
}

}  // namespace

const Renderer& renderer_of(const Settings& settings) {
  if (settings.full_report && settings.output == "text") return full_report(settings.out);
  if (settings.stats && settings.output == "text") return renderers::stats;
  for (const Renderer* renderer : renderers::kAll)
    if (renderer->name == settings.output) return *renderer;
  return renderers::text;
}

int exit_status(const Report& report, const Settings& settings) {
  const Conclusion verdict = report.summary.verdict;
  // An alarm counts only where the analysis was asked for by name.
  const bool alarm = !settings.request.analyze.wanted.empty() &&
                     std::ranges::any_of(report.analyses, [](const Answer& answer) {
                       return answer.alarm.has_value();
                     });
  if (verdict == Conclusion::trouble) return kTrouble;
  return (verdict == Conclusion::different || alarm) && !settings.exit_zero ? kDifferent : kSame;
}

Result<void> check_inputs(const Settings& settings, const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs)
    if (input == "-") return Error("'-': reading from standard input is not supported");
  // An unset variable of a script must neither pass nor fail by accident.
  if (std::ranges::find(inputs, "") != inputs.end())
    return Error("an input is an empty name; is a variable of your script unset?");
  if (settings.single && inputs.size() != 1)
    return Error("--single needs one input, has {}", inputs.size());
  if (!settings.single && inputs.size() == 1)
    return Error(
        "needs two inputs, has one; --single compares the tensors of one input with each other, "
        "'tensordiff show' lists them");
  if (!settings.single && inputs.size() != 2)
    return Error("needs two inputs, has {}", inputs.size());
  const Renderer& renderer = renderer_of(settings);
  // A setting of a file holds for all commands; only who asks here has to be told.
  const bool asked = std::ranges::any_of(settings.given, [](const auto& option) {
    return option.name == "include-charts" && option.origin.empty();
  });
  if (asked && &renderer != &renderers::markdown && &renderer != &renderers::html)
    return Error("--include-charts needs -o markdown or -o html; {} shows no charts",
                 renderer.name);
  const Request& request = settings.request;
  if (!request.analyze.wanted.empty() && (inputs.size() == 1 || request.shape_only))
    return Error("{} needs two inputs and their values", request.analyze.wanted[0]->flag);
  return {};
}

Result<Report> compare_inputs(const Settings& settings, const std::vector<std::string>& inputs,
                              std::function<void(uint64_t done, uint64_t total)> progress) {
  Request request = settings.request;
  request.a = inputs[0];
  if (inputs.size() == 2) request.b = inputs[1];
  request.open = settings.open;
  request.unpaired_stats = renderer_of(settings).unpaired_stats;
  request.progress = std::move(progress);
  // A full report answers all questions, unless some were picked.
  const bool whole = settings.full_report && inputs.size() == 2 && !request.shape_only;
  if (whole && request.analyze.wanted.empty())
    request.analyze.wanted.assign(std::begin(analyses::kAll), std::end(analyses::kAll));
  TRY(check_thresholds(request.analyze).in("--threshold"));
  Report report = TRY(compare_models(request));
  if (settings.baseline) settings.baseline->judge(report);
  return report;
}

}  // namespace tensordiff
