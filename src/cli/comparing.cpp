#include "cli/comparing.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string_view>
#include <vector>

#include "analyze/analysis.h"
#include "base/suggest.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/fold.h"
#include "cli/terminal.h"
#include "pipeline.h"
#include "report/wording.h"

namespace tensordiff {
namespace {

// A folder with more files is not searched for a name that was misspelt.
constexpr std::size_t kNamesLookedAt = 10'000;
constexpr std::size_t kNameMin = 4;  // Of a shorter name, any other would be near.

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

namespace {

// "model-00001-of-00003.safetensors" without its number, "model--of-00003.safetensors": what a glob
// makes of one model. Empty for any other name.
std::string without_number(const std::string& path) {
  const std::size_t of = path.rfind("-of-");
  const auto digit = [&](std::size_t at) {
    return at < path.size() && path[at] >= '0' && path[at] <= '9';
  };
  if (of == std::string::npos || of == 0 || !digit(of - 1) || !digit(of + 4)) return "";
  std::size_t first = of;
  while (first > 0 && digit(first - 1)) --first;
  return path.substr(0, first) + path.substr(of);
}

// The file of the same folder that was meant, for one that is not there.
std::string nearest_file(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code fault;
  if (path.find("://") != std::string::npos || fs::exists(path, fault)) return "";
  const fs::path wanted(path);
  if (wanted.filename().string().size() < kNameMin) return "";
  const fs::path folder = wanted.has_parent_path() ? wanted.parent_path() : fs::path(".");
  std::vector<std::string> names;
  for (fs::directory_iterator each(folder, fault), end; !fault && each != end;
       each.increment(fault)) {
    names.push_back(each->path().filename().string());
    if (names.size() > kNamesLookedAt) return "";
  }
  const std::vector<std::string_view> words(names.begin(), names.end());
  const std::string_view meant = nearest_word(wanted.filename().string(), words);
  return meant.empty() ? ""
                       : (wanted.has_parent_path() ? folder / meant : fs::path(meant)).string();
}

}  // namespace

int show_report(const Report& report, const Settings& settings) {
  RenderOptions options = settings.render;
  options.charts = options.charts || settings.full_report;
  options.verbose = options.verbose || settings.full_report;
  options.color = wants_color(settings);
  options.width = output_width();
  const bool shown = !settings.quiet || !settings.out.empty();
  std::string text = shown ? renderer_of(settings).render(report, options) : "";
  if (&renderer_of(settings) == &renderers::text && settings.out.empty() && isatty(STDOUT_FILENO))
    text = folded(text, options.width);
  if (const Result<void> written = deliver(text, settings); !written.ok())
    return fail(written.error());
  return exit_status(report, settings);
}

bool are_shards(const std::vector<std::string>& inputs) {
  const std::string model = inputs.size() < 2 ? "" : without_number(inputs[0]);
  return !model.empty() && std::ranges::all_of(inputs, [&](const std::string& input) {
    return without_number(input) == model;
  }) && std::ranges::find(inputs.begin() + 1, inputs.end(), inputs[0]) == inputs.end();
}

// What a glob made of one model or of two; empty where that is not what happened.
std::string shards_text(const std::vector<std::string>& inputs) {
  if (are_shards(inputs))
    return fmt::format(
        "these {} files are shards of one model; pass its folder or its index instead",
        inputs.size());
  std::map<std::string, std::size_t> models;
  if (inputs.size() > 2)
    for (const std::string& input : inputs)
      if (const std::string model = without_number(input); !model.empty()) ++models[model];
  std::size_t files = 0, several = 0;
  for (const auto& [model, count] : models) {
    files += count > 1 ? count : 0;
    several += count > 1 ? 1 : 0;
  }
  if (several == 0) return "";
  return fmt::format("{} of these files are shards of {}; pass {} instead", files,
                     counted(several, "model"),
                     several == 1 ? "its folder or its index" : "the folder or the index of each");
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
  if (!settings.single)
    if (const std::string said = shards_text(inputs); !said.empty()) return Error("{}", said);
  if (!settings.single && inputs.size() != 2)
    return Error("needs two inputs, has {}",
                 inputs.empty() ? "none" : std::to_string(inputs.size()));
  for (const std::string& input : inputs)
    if (const std::string meant = nearest_file(input); !meant.empty())
      return Error("no file named '{}'; did you mean '{}'?", printable(input), printable(meant));
  const Renderer& renderer = renderer_of(settings);
  // A setting of a file holds for all commands; only who asks here has to be told.
  const bool asked = std::ranges::any_of(settings.given, [](const auto& option) {
    return option.name == "include-charts" && option.origin.empty();
  });
  if (asked && &renderer != &renderers::markdown && &renderer != &renderers::html)
    return Error("--include-charts needs -o markdown or -o html; {} has no pictures",
                 renderer.name);
  const Request& request = settings.request;
  if (!request.analyze.wanted.empty() && (inputs.size() == 1 || request.shape_only))
    return Error("{} needs two inputs and their values", request.analyze.wanted[0]->flag);
  return {};
}

Result<Request> request_of(const Settings& settings, const std::vector<std::string>& inputs) {
  Request request = settings.request;
  request.a = inputs[0];
  if (inputs.size() == 2) request.b = inputs[1];
  request.open = settings.open;
  request.unpaired_stats = renderer_of(settings).unpaired_stats;
  // A full report answers all questions, unless some were picked.
  const bool whole = settings.full_report && inputs.size() == 2 && !request.shape_only;
  if (whole && request.analyze.wanted.empty())
    request.analyze.wanted.assign(std::begin(analyses::kAll), std::end(analyses::kAll));
  TRY(check_thresholds(request.analyze).in("--threshold"));
  return request;
}

Result<Report> compare_inputs(const Settings& settings, const std::vector<std::string>& inputs,
                              std::function<void(uint64_t done, uint64_t total)> progress) {
  Request request = TRY(request_of(settings, inputs));
  request.progress = std::move(progress);
  Report report = TRY(compare_models(request));
  if (settings.baseline) settings.baseline->judge(report);
  return report;
}

}  // namespace tensordiff
