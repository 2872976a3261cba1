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
    {"--diagnose", "", "separate noise from mistakes and explain them (default)",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.request.diagnose.enabled = true;
       return {};
     }},
    {"--no-diagnose", "", "skip diagnosis; the tolerance decides",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.request.diagnose.enabled = false;
       return {};
     }},
    {"--explain", "", "list what was tried and why it was rejected",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.request.diagnose.explain = true;
       return {};
     }},
    {"--order", "FILE", "order of computing: names of A's tensors, one per line", apply_order},
    {"--weights", "MODEL", "checkpoint of the model, to recompute its steps",
     [](Settings& settings, std::string_view path) -> Result<void> {
       settings.request.weights = path;
       return {};
     }},
    {"--config", "FILE", "config.json of the model: heads, RoPE, epsilon …", apply_config},
};

}  // namespace

constinit const OptionGroup option_groups::diagnosis = {.title = "diagnosis", .options = kOptions};

}  // namespace tensordiff
