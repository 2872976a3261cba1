// Which tensors of the inputs are compared.

#include "cli/command.h"

namespace tensordiff {
namespace {

constexpr Option kOptions[] = {
    {"--path", "PREFIX", "only names with this prefix (* is any); repeatable",
     [](Settings& settings, std::string_view prefix) -> Result<void> {
       settings.request.paths.emplace_back(prefix);
       return {};
     }},
    {"--ignore-keys-regex", "RE", "skip tensors whose name matches RE",
     [](Settings& settings, std::string_view regex) -> Result<void> {
       settings.request.ignore_regex = regex;
       return {};
     }},
};

}  // namespace

constinit const OptionGroup option_groups::input = {.title = "input", .options = kOptions};

}  // namespace tensordiff
