// What the work may cost.

#include <cstdlib>

#include "cli/command.h"
#include "cli/values.h"

namespace tensordiff {
namespace {

constexpr auto kAcceptedOnly = [](Settings&, std::string_view) -> Result<void> { return {}; };

Result<void> apply_part(Settings& settings, std::string_view text) {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  settings.part = text == "auto" ? TRY(part_of_job(variable)) : TRY(parse_part(text));
  return {};
}

constexpr Option kOptions[] = {
    {"--part", "K/N", "measure share K of N, for tensordiff merge; auto: ask the job", apply_part},
    {"--memory-limit", "BYTES", "accepted for compatibility; memory use is always bounded",
     [](Settings&, std::string_view text) -> Result<void> {
       TRY(parse_size(text));
       return {};
     }},
    {"--stream", "", "accepted for compatibility; memory use is always bounded", kAcceptedOnly},
};

}  // namespace

constinit const OptionGroup option_groups::speed = {.title = "speed", .options = kOptions};

}  // namespace tensordiff
