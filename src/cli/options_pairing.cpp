// Which tensor answers to which, and how two layouts become one.

#include "base/byte_source.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/values.h"

namespace tensordiff {
namespace {

Result<void> apply_match(Settings& settings, std::string_view list) {
  std::vector<std::string_view> names = {"auto"};
  for (const Matcher* matcher : matchers::kAll) names.push_back(matcher->name);
  std::vector<std::string>& strategies = settings.request.match.strategies;
  strategies.clear();
  for (const std::string_view name : split(list, ',')) {
    if (TRY(parse_word(name, names)) > 0) strategies.emplace_back(name);
    if (name == "auto") strategies.assign(names.begin() + 1, names.end());
  }
  return {};
}

Result<void> apply_pairs(Settings& settings, std::string_view file) {
  const Bytes bytes = TRY(map_file(std::string(file)).in(printable(file)));
  settings.request.match.pairs = TRY(parse_pairs(as_text(bytes.view)).in(printable(file)));
  return {};
}

Result<void> apply_tp(Settings& settings, std::string_view choice) {
  settings.request.tp = {};
  if (choice == "none") settings.request.tp.enabled = false;
  if (choice == "none" || choice == "auto") return {};
  settings.request.tp.ranks = TRY(parse_count(choice));
  if (settings.request.tp.ranks < 2) return Error("auto, none, or a number of ranks above 1");
  return {};
}

Result<void> apply_threshold(Settings& settings, std::string_view text) {
  const double threshold = TRY(parse_tolerance(text));
  if (threshold > 1) return Error("{} is not between 0 and 1", text);
  settings.request.match.fuzzy_threshold = threshold;
  return {};
}

Result<void> apply_align(Settings& settings, std::string_view choice) {
  constexpr std::string_view kChoices[] = {"none", "auto"};
  settings.request.align.enabled = TRY(parse_word(choice, kChoices)) == 1;
  return {};
}

constexpr Option kOptions[] = {
    {"--match", "LIST", "auto (default), or some of its strategies: manual,exact,fuzzy",
     apply_match},
    {"--fuzzy-threshold", "X", "how alike names must be to be paired by it, 0 to 1; default 0.6",
     apply_threshold},
    {"--pairs", "FILE", "pairs to make first, as JSON or YAML: 'name of a: name of b'",
     apply_pairs},
    {"--save-pairs", "FILE", "write the pairs that were made, for --pairs",
     [](Settings& settings, std::string_view file) -> Result<void> {
       settings.save_pairs = file;
       return {};
     }},
    {"--tp", "HOW", "auto (default): gather ranks found in names; none; or how many there must be",
     apply_tp},
    {"--align", "HOW", "auto (default): bring pairs to one layout; none: as stored", apply_align},
};

}  // namespace

constinit const OptionGroup option_groups::pairing = {.title = "pairing and layout",
                                                      .options = kOptions};

}  // namespace tensordiff
