// The flags of the analyses, one for each row of analyses::kAll, and what they take.

#include <algorithm>
#include <array>

#include "analyze/analysis.h"
#include "base/suggest.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/values.h"

namespace tensordiff {
namespace {

Result<void> apply_threshold(Settings& settings, std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0)
    return Error("'{}' is not of the form NAME=NUMBER", printable(text));
  const std::string_view name = text.substr(0, equals);
  const std::vector<std::string_view> names = threshold_names();
  if (std::ranges::find(names, name) == names.end())
    return Error("no limit '{}'{}", printable(name), did_you_mean(name, names));
  const double limit = TRY(parse_tolerance(text.substr(equals + 1)));
  settings.request.analyze.thresholds.emplace_back(name, limit);
  return {};
}

Result<void> apply_device(Settings& settings, std::string_view name) {
  settings.request.analyze.device = name;
  return {};
}

Result<void> apply_base(Settings& settings, std::string_view path) {
  settings.request.analyze.bases.emplace_back(path);
  return {};
}

Result<void> apply_activations(Settings& settings, std::string_view path) {
  settings.request.analyze.activations = path;
  return {};
}

// "+5%", "5%" or a size of all weights, "4.5GB".
Result<void> apply_size_budget(Settings& settings, std::string_view text) {
  if (text.ends_with('%')) {
    const std::size_t sign = text.starts_with('+') ? 1 : 0;
    const double percent = TRY(parse_tolerance(text.substr(sign, text.size() - sign - 1)));
    settings.request.analyze.size_growth = percent / 100;
    return {};
  }
  settings.request.analyze.size_budget = static_cast<double>(TRY(parse_size(text)));
  return {};
}

// An option knows no more than a function: so each flag has one of its own.
template <std::size_t I>
Result<void> ask(Settings& settings, std::string_view) {
  settings.request.analyze.wanted.push_back(analyses::kAll[I]);
  return {};
}

constexpr Option kSettings[] = {
    {"--threshold", "NAME=X", "set a limit of --regression-test or --alert-on-degradation",
     apply_threshold},
    {"--base", "MODEL", "test whether B merges A with MODEL (--what-changed)", apply_base},
    {"--activations", "DUMP", "inputs of layers, to measure quantization damage",
     apply_activations},
    {"--size-budget", "SIZE", "size budget of B's weights for mixed precision: +5%, 4GB",
     apply_size_budget},
    {"--device", "NAME", "device for speed estimates: h200, a100 …, FLOP/s:BYTES/s", apply_device},
};

template <std::size_t... I>
auto all_options(std::index_sequence<I...>) {
  std::array<Option, sizeof...(I) + std::size(kSettings)> options = {
      Option{analyses::kAll[I]->flag, "", analyses::kAll[I]->definition, ask<I>}...};
  std::ranges::copy(kSettings, options.begin() + sizeof...(I));
  return options;
}

// Made when the program starts, since the rows of the analyses are in other files.
const auto kOptions = all_options(std::make_index_sequence<std::size(analyses::kAll)>());

}  // namespace

constinit const OptionGroup option_groups::analyses = {.title = "analyses (docs/analyses.md)",
                                                       .options = kOptions};

}  // namespace tensordiff
