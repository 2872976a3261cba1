// How differences are explained.

#include "base/byte_source.h"
#include "base/text.h"
#include "cli/command.h"

namespace tensordiff {
namespace {

Result<void> apply_order(Settings& settings, std::string_view file) {
  const Bytes bytes = TRY(map_file(std::string(file)).in(printable(file)));
  settings.request.diagnose.order.clear();
  for (const std::string_view line : split(as_text(bytes.view), '\n'))
    if (!line.empty()) settings.request.diagnose.order.emplace_back(line);
  return {};
}

Result<void> apply_config(Settings& settings, std::string_view file) {
  const Bytes bytes = TRY(map_file(std::string(file)).in(printable(file)));
  settings.request.diagnose.facts =
      TRY(parse_model_config(as_text(bytes.view)).in(printable(file)));
  return {};
}

constexpr Option kOptions[] = {
    {"--diagnose", "", "tell noise from mistakes, and explain these (default)",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.request.diagnose.enabled = true;
       return {};
     }},
    {"--no-diagnose", "", "leave that out: the elementwise tolerance decides",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.request.diagnose.enabled = false;
       return {};
     }},
    {"--explain", "", "also say what was tried on each pair, and why it was rejected",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.request.diagnose.explain = true;
       return {};
     }},
    {"--order", "FILE", "names of a's tensors in the order they were computed, one a line",
     apply_order},
    {"--weights", "MODEL", "the model that was run: projections and MLPs are computed again",
     [](Settings& settings, std::string_view path) -> Result<void> {
       settings.request.weights = path;
       return {};
     }},
    {"--config", "FILE", "its config.json: numbers of heads, RoPE base, epsilon, window",
     apply_config},
};

}  // namespace

constinit const OptionGroup option_groups::diagnosis = {.title = "diagnosis", .options = kOptions};

}  // namespace tensordiff
