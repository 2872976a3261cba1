// How differences are explained.

#include "base/byte_source.h"
#include "base/text.h"
#include "cli/command.h"

namespace tensordiff {
namespace {

Result<void> apply_order(Settings& settings, std::string_view file) {
  const Bytes bytes = TRY(map_file(std::string(file)));
  settings.request.diagnose.order.clear();
  for (const std::string_view line : split(as_text(bytes.view), '\n'))
    if (!line.empty()) settings.request.diagnose.order.emplace_back(line);
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
};

}  // namespace

constinit const OptionGroup option_groups::diagnosis = {.title = "diagnosis", .options = kOptions};

}  // namespace tensordiff
