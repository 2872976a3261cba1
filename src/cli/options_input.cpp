// Which tensors of the inputs are compared.

#include "cli/command.h"

namespace tensordiff {
namespace {

constexpr Option kOptions[] = {
    {"--path", "PREFIX", "only tensors whose name starts so; * stands for anything; repeatable",
     [](Settings& settings, std::string_view prefix) -> Result<void> {
       settings.request.paths.emplace_back(prefix);
       return {};
     }},
    {"--ignore-keys-regex", "RE", "leave out tensors in whose name this is found",
     [](Settings& settings, std::string_view regex) -> Result<void> {
       settings.request.ignore_regex = regex;
       return {};
     }},
};

}  // namespace

constinit const OptionGroup option_groups::input = {.title = "input", .options = kOptions};

}  // namespace tensordiff
