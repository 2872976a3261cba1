// What the work may cost.

#include "cli/command.h"
#include "cli/values.h"

namespace tensordiff {
namespace {

constexpr auto kAcceptedOnly = [](Settings&, std::string_view) -> Result<void> { return {}; };

constexpr Option kOptions[] = {
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
