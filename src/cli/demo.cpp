// tensordiff demo: the debugger on dumps that are part of the program.

#include "cli/command.h"
#include "cli/serving.h"

namespace tensordiff {
namespace {

int run(const Settings& settings, const std::vector<std::string>& inputs) {
  if (!inputs.empty()) return fail(Error("takes no inputs; tensordiff serve does"));
  serve::ServeOptions options = settings.serve;
  options.demo = true;
  return serve_until_stopped(options, settings);
}

constexpr const OptionGroup* kGroups[] = {&option_groups::server};

}  // namespace

constinit const Command commands::demo = {
    .name = "demo",
    .usage = "tensordiff demo [options]",
    .summary = "open the debugger on built-in dumps, one with a bug",
    .groups = kGroups,
    .run = run,
};

}  // namespace tensordiff
