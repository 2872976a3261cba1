// Which tensor answers to which, and how two layouts become one.

#include "base/byte_source.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/values.h"

namespace tensordiff {
namespace {

// Strategies by name. The one that runs a program has the program after a colon.
Result<void> apply_match(Settings& settings, std::string_view list) {
  constexpr std::string_view kExec = "exec:";
  std::vector<std::string_view> names = {"auto"};
  for (const Matcher* matcher : matchers::kAll) names.push_back(matcher->name);
  MatchOptions& options = settings.request.match;
  options.strategies.clear();
  options.program.clear();
  for (std::string_view name : split(list, ',')) {
    if (name.starts_with(kExec)) {
      options.program = name.substr(kExec.size());
      name = name.substr(0, kExec.size() - 1);
    }
    if (name == matchers::exec.name && options.program.empty())
      return Error("'exec' needs a program: exec:PROGRAM");
    if (TRY(parse_word(name, names)) > 0) options.strategies.emplace_back(name);
    if (name == "auto")
      options.strategies.insert(options.strategies.end(), names.begin() + 1, names.end());
  }
  return {};
}

Result<void> apply_match_regex(Settings& settings, std::string_view regex) {
  settings.request.match.pattern = TRY(NamePattern::make(std::string(regex)));
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
  const Result<uint64_t> ranks = parse_count(choice);
  if (!ranks.ok() || ranks.value() < 2)
    return Error("'{}' is not auto, none, or a number of ranks above 1", printable(choice));
  settings.request.tp.ranks = ranks.value();
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

// "b s (h d) -> s h d", for all pairs or, with "NAMES:" before it, for some.
Result<void> apply_dims(Settings& settings, std::string_view text) {
  DimsOf dims;
  const std::size_t arrow = text.find("->");
  if (const std::size_t colon = text.rfind(':', arrow); colon != std::string_view::npos) {
    dims.names = text.substr(0, colon);
    text.remove_prefix(colon + 1);
  }
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  dims.dims = TRY(parse_dims(text));
  settings.request.dims.push_back(std::move(dims));
  return {};
}

constexpr Option kOptions[] = {
    {"--layout", "NAME", "layout of the dumps, or none (default: detect it)",
     [](Settings& settings, std::string_view name) -> Result<void> {
       settings.request.layout = name;
       return {};
     }},
    {"--require-all", "", "treat tensors missing from one dump as differences",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.request.require_all = true;
       return {};
     }},
    {"--match", "LIST", "pairing strategies: auto (default), or a list: exact,fuzzy,exec:PROGRAM",
     apply_match},
    {"--match-regex", "RE", "read (?<layer>..) and (?<stage>..), or (?<key>..), from names",
     apply_match_regex},
    {"--fuzzy-threshold", "X", "minimum name similarity, 0 to 1 (default 0.6)", apply_threshold},
    {"--pairs", "FILE", "make these pairs first: {name in A: name in B}", apply_pairs},
    {"--save-pairs", "FILE", "write the pairs to a file that --pairs reads",
     [](Settings& settings, std::string_view file) -> Result<void> {
       settings.save_pairs = file;
       return {};
     }},
    {"--tp", "HOW", "gather ranks: auto (default), none, their number", apply_tp},
    {"--align", "HOW", "auto (default): undo layout differences; none: compare as stored",
     apply_align},
    {"--dims", "SPEC", "[GLOB:] axes of tensors, \"b s (h[tp] d) -> s h d\"", apply_dims},
};

}  // namespace

constinit const OptionGroup option_groups::pairing = {.title = "pairing and layout",
                                                      .options = kOptions};

}  // namespace tensordiff
