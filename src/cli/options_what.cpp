// What is compared and told.

#include "cli/command.h"

namespace tensordiff {
namespace {

constexpr Option kOptions[] = {
    {"--stats", "", "one line per changed tensor: mean and std before and after",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.stats = true;
       return {};
     }},
    {"--single", "", "compare the tensors of one input with each other",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.single = true;
       return {};
     }},
    {"--shape-only", "", "compare names and shapes only; read no values",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.request.shape_only = true;
       return {};
     }},
    {"--brief", "", "print only the verdict line",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.render.brief = true;
       return {};
     }},
    {"--exit-zero", "", "exit with 0 even if something differs",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.exit_zero = true;
       return {};
     }},
};

}  // namespace

constinit const OptionGroup option_groups::what = {.title = "what", .options = kOptions};

}  // namespace tensordiff
