// What the work may cost.

#include "cli/command.h"
#include "cli/values.h"

namespace tensordiff {
namespace {

constexpr auto kAcceptedOnly = [](Settings&, std::string_view) -> Result<void> { return {}; };

constexpr Option kOptions[] = {
    {"--memory-limit", "BYTES", "without effect: tensors are always read in pieces",
     [](Settings&, std::string_view text) -> Result<void> {
       TRY(parse_size(text));
       return {};
     }},
    {"--stream", "", "without effect: tensors are always read in pieces", kAcceptedOnly},
};

}  // namespace

constinit const OptionGroup option_groups::speed = {.title = "speed", .options = kOptions};

}  // namespace tensordiff
