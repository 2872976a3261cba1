// tensordiff serve [A [B]]: the debugger in the browser.

#include "cli/command.h"
#include "cli/serving.h"

namespace tensordiff {
namespace {

int run(const Settings& settings, const std::vector<std::string>& inputs) {
  if (inputs.size() > 2) return fail(Error("takes at most two inputs, has {}", inputs.size()));
  serve::ServeOptions options = settings.serve;
  options.inputs = inputs;
  options.open = settings.open;
  return serve_until_stopped(options, settings);
}

constexpr const OptionGroup* kGroups[] = {&option_groups::server};

}  // namespace

constinit const Command commands::serve = {
    .name = "serve",
    .usage = "tensordiff serve [A [B]] [options]",
    .summary = "open the debugger in the browser (http://127.0.0.1:5000)",
    .groups = kGroups,
    .run = run,
};

}  // namespace tensordiff
