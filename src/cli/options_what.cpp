// What is compared and told.

#include "cli/command.h"
#include "cli/shared_options.h"

namespace tensordiff {
namespace {

constexpr Option kOptions[] = {
    shared_options::kStats,
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
    {"--earlier", "FILE", "an earlier digest of A: weights that B still has are stale",
     [](Settings& settings, std::string_view file) -> Result<void> {
       settings.earlier = file;
       return {};
     }},
    shared_options::kBrief,
    shared_options::kExitZero,
};

}  // namespace

constinit const OptionGroup option_groups::what = {.title = "what", .options = kOptions};

}  // namespace tensordiff
