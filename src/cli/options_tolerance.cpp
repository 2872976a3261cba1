// How far apart two values may be.

#include "base/byte_source.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/values.h"
#include "compare/tolerance_rules.h"

namespace tensordiff {
namespace {

Result<void> apply_file(Settings& settings, std::string_view file) {
  const Bytes bytes = TRY(map_file(std::string(file)).in(printable(file)));
  settings.request.rules = std::make_shared<const ToleranceRules>(
      TRY(ToleranceRules::parse(as_text(bytes.view)).in(printable(file))));
  return {};
}

constexpr Option kOptions[] = {
    {"--epsilon", "X", "same as --atol X --rtol 0",
     [](Settings& settings, std::string_view text) -> Result<void> {
       settings.request.compare.atol = TRY(parse_tolerance(text));
       settings.request.compare.rtol = 0;
       return {};
     }},
    {"--atol", "X", "absolute tolerance (default: by the coarser dtype)",
     [](Settings& settings, std::string_view text) -> Result<void> {
       settings.request.compare.atol = TRY(parse_tolerance(text));
       return {};
     }},
    {"--rtol", "X", "tolerance relative to A (default: as for --atol)",
     [](Settings& settings, std::string_view text) -> Result<void> {
       settings.request.compare.rtol = TRY(parse_tolerance(text));
       return {};
     }},
    {"--tolerance-file", "FILE", "tolerances and limits by name pattern, in YAML", apply_file},
    {"--noise", "RUN", "a second reference run, to measure noise",
     [](Settings& settings, std::string_view path) -> Result<void> {
       settings.request.noise = path;
       return {};
     }},
    {"--equal-nan", "", "treat NaN at the same place as equal (default)",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.request.compare.equal_nan = true;
       return {};
     }},
    {"--no-equal-nan", "", "treat every NaN as a difference",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.request.compare.equal_nan = false;
       return {};
     }},
};

}  // namespace

constinit const OptionGroup option_groups::tolerance = {.title = "tolerance", .options = kOptions};

}  // namespace tensordiff
