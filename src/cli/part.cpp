#include "cli/part.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "cli/batch_state.h"
#include "cli/command.h"
#include "cli/comparing.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "parts/parts.h"

namespace tensordiff {
namespace {

constexpr const OptionGroup* kKept[] = {
    &option_groups::input, &option_groups::pairing,   &option_groups::tolerance,
    &option_groups::what,  &option_groups::diagnosis, &option_groups::analyses,
};
// Of these groups, what only matters for showing a result, or writes a file.
constexpr std::string_view kNotKept[] = {"stats", "brief", "exit-zero", "save-pairs", "earlier"};

const Option* kept_option(std::string_view name) {
  if (std::ranges::find(kNotKept, name) != std::end(kNotKept)) return nullptr;
  for (const OptionGroup* group : kKept)
    for (const Option& option : group->options)
      if (option.flags.substr(option.flags.find("--") + 2) == name) return &option;
  return nullptr;
}

}  // namespace

std::string part_file_name(const PartNumber& number) {
  const std::string of = fmt::format("{}", number.of);
  return fmt::format("part-{:0{}}-of-{}.tdpart", number.part, of.size(), of);
}

std::vector<GivenOption> options_of_part(const Settings& settings) {
  std::vector<GivenOption> options;
  for (const Settings::Given& given : settings.given)
    if (kept_option(given.name)) options.push_back({given.name, given.value});
  return options;
}

Result<void> apply_part_options(const std::vector<GivenOption>& options, Settings& settings) {
  for (const GivenOption& given : options) {
    const Option* option = kept_option(given.name);
    if (!option)
      return Error("the parts have an option '{}' that no part can have", printable(given.name));
    if (given.name == "match" && given.value.find("exec:") != std::string::npos)
      return Error(
          "the parts were paired by a program ({}); merge runs none. Save the pairs with "
          "--save-pairs and give --pairs to all parts instead",
          printable(given.value));
    const std::string flag = "--" + given.name;
    TRY(option->apply(settings, option->argument.empty() ? flag : given.value).in(flag));
  }
  return {};
}

int run_part(const Settings& settings, const std::vector<std::string>& inputs) {
  const Result<Partial> partial = [&]() -> Result<Partial> {
    Request request = TRY(request_of(settings, inputs));
    request.unpaired_stats = false;  // The merge tells them.
    ProgressLine progress(!settings.quiet);
    if (progress.active())
      request.progress = [&](uint64_t done, uint64_t total) {
        progress.update(done, std::max(done, total / settings.part->of));
      };
    return measure_part(request, *settings.part, options_of_part(settings));
  }();
  if (!partial.ok()) return fail(partial.error());
  const std::string file = settings.out.empty() ? part_file_name(*settings.part) : settings.out;
  if (const Result<void> written = write_whole(file, write_partial(partial.value())); !written.ok())
    return fail(written.error());
  if (!settings.quiet)
    say(fmt::format("tensordiff: wrote {}; when all {} parts are there: tensordiff merge PARTS\n",
                    printable(file, 1000), settings.part->of));
  return kSame;
}

}  // namespace tensordiff
