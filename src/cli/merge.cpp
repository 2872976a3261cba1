// tensordiff merge PARTS…: the report of a comparison that was made in parts.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "cli/command.h"
#include "cli/comparing.h"
#include "cli/part.h"
#include "cli/shared_options.h"
#include "cli/terminal.h"
#include "parts/parts.h"

namespace tensordiff {
namespace {

namespace fs = std::filesystem;

constexpr Option kOptions[] = {
    {"--a", "PATH", "where A is now (default: where the parts found it)",
     [](Settings& settings, std::string_view path) -> Result<void> {
       settings.input_a = path;
       return {};
     }},
    {"--b", "PATH", "where B is now (default: where the parts found it)",
     [](Settings& settings, std::string_view path) -> Result<void> {
       settings.input_b = path;
       return {};
     }},
    shared_options::kStats,
    shared_options::kBrief,
    shared_options::kExitZero,
};
constexpr OptionGroup kGroup = {"merging", kOptions};
constexpr const OptionGroup* kGroups[] = {&kGroup, &option_groups::output};

// The files that are meant: a folder stands for the parts in it.
std::vector<std::string> files_in(const std::vector<std::string>& inputs) {
  std::vector<std::string> files;
  for (const std::string& input : inputs) {
    std::error_code error;
    if (!fs::is_directory(input, error)) {
      files.push_back(input);
      continue;
    }
    std::vector<std::string> inside;
    for (fs::directory_iterator each(input, error), end; !error && each != end;
         each.increment(error))
      if (each->path().extension() == ".tdpart") inside.push_back(each->path().string());
    std::ranges::sort(inside);
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

Result<std::vector<NamedPartial>> read_parts(const std::vector<std::string>& inputs) {
  std::vector<NamedPartial> parts;
  for (const std::string& file : files_in(inputs)) {
    const Bytes bytes = TRY(map_file(file).in(printable(file, 1000)));
    Partial partial = TRY(read_partial(bytes.view).in(printable(file, 1000)));
    parts.push_back({file, std::move(partial)});
  }
  TRY(check_parts(parts));
  return parts;
}

// What is being compared, since the parts say so and not the user.
std::string told(const PartHead& head, const std::vector<std::string>& inputs) {
  std::string line = fmt::format("tensordiff: merging {} part{} of: tensordiff", head.number.of,
                                 head.number.of == 1 ? "" : "s");
  for (const std::string& input : inputs) line += " " + printable(input, 1000);
  for (const GivenOption& option : head.options)
    line += fmt::format(" --{}{}{}", printable(option.name), option.value.empty() ? "" : " ",
                        printable(option.value));
  return line + "\n";
}

void note_targets(const std::vector<NamedPartial>& parts) {
  for (const NamedPartial& each : parts)
    if (each.partial.head.target != parts[0].partial.head.target)
      return say(fmt::format(
          "tensordiff: the parts used different instruction sets ({}, {}); the last digits may "
          "not be those of one process\n",
          printable(parts[0].partial.head.target), printable(each.partial.head.target)));
}

Result<Report> merge(Settings& settings, const std::vector<NamedPartial>& parts) {
  const PartHead& head = parts[0].partial.head;
  std::vector<std::string> inputs = head.inputs;
  if (!settings.input_a.empty()) inputs[0] = settings.input_a;
  if (!settings.input_b.empty()) {
    if (inputs.size() == 1) return Error("--b: the parts compare one input with itself");
    inputs[1] = settings.input_b;
  }
  if (!settings.quiet) say(told(head, inputs));
  if (!settings.quiet) note_targets(parts);
  TRY(apply_part_options(head.options, settings));
  TRY(check_inputs(settings, inputs));
  const Request request = TRY(request_of(settings, inputs));
  Report report = TRY(merge_parts(request, parts));
  if (settings.baseline) settings.baseline->judge(report);
  return report;
}

int run(const Settings& settings, const std::vector<std::string>& inputs) {
  const Result<std::vector<NamedPartial>> parts = read_parts(inputs);
  if (!parts.ok()) return fail(parts.error());
  Settings with_options = settings;
  const Result<Report> report = merge(with_options, parts.value());
  if (!report.ok()) return fail(report.error());
  return show_report(report.value(), with_options);
}

}  // namespace

constinit const Command commands::merge = {
    .name = "merge",
    .usage = "tensordiff merge PARTS... [options]",
    .summary = "merge the partial results of compare --part into one report",
    .groups = kGroups,
    .run = run,
};

}  // namespace tensordiff
