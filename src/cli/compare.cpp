// tensordiff compare A B: pairs the tensors of two inputs, compares them and shows the result.

#include <fmt/format.h>

#include <cstdio>

#include "base/byte_source.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "cli/values.h"
#include "pipeline.h"

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

// What was paired, for --pairs to read. Parts of fused tensors are found again without it.
Result<void> save_pairs(const Report& report, const Settings& settings) {
  if (settings.save_pairs.empty()) return {};
  std::vector<NamePair> pairs;
  for (const PairRow& row : report.pairs)
    if (row.matched_by != matchers::fused.name) pairs.push_back({row.a.name, row.b.name});
  Settings to_file = settings;
  to_file.out = settings.save_pairs;
  return deliver(pairs_text(pairs), to_file);
}

Result<void> apply_align(Settings& settings, std::string_view choice) {
  constexpr std::string_view kChoices[] = {"none", "auto"};
  settings.request.align.enabled = TRY(parse_word(choice, kChoices)) == 1;
  return {};
}

Result<void> apply_output(Settings& settings, std::string_view name) {
  std::vector<std::string_view> names;
  for (const Renderer* renderer : renderers::kAll) names.push_back(renderer->name);
  settings.output = names[TRY(parse_word(name, names))];
  return {};
}

Result<void> apply_sort(Settings& settings, std::string_view key) {
  constexpr std::string_view kKeys[] = {"layer", "name", "similarity", "difference", "size"};
  settings.render.sort = static_cast<Sort>(TRY(parse_word(key, kKeys)));
  return {};
}

// "identical" and "different" mean what they say to a person: with `equal`, with `incomparable`.
Result<void> apply_show(Settings& settings, std::string_view list) {
  constexpr std::string_view kWords[] = {"identical", "close", "different", "unpaired", "error"};
  std::set<Status> show;
  settings.render.show_unpaired = false;
  for (const std::string_view word : split(list, ',')) {
    switch (TRY(parse_word(word, kWords))) {
      case 0:
        show.insert({Status::identical, Status::equal});
        break;
      case 1:
        show.insert(Status::close);
        break;
      case 2:
        show.insert({Status::different, Status::incomparable});
        break;
      case 3:
        settings.render.show_unpaired = true;
        break;
      default:
        show.insert(Status::error);
        break;
    }
  }
  settings.render.show = show;
  return {};
}

Result<void> apply_order(Settings& settings, std::string_view file) {
  const Bytes bytes = TRY(map_file(std::string(file)));
  settings.request.diagnose.order.clear();
  for (const std::string_view line : split(as_text(bytes.view), '\n'))
    if (!line.empty()) settings.request.diagnose.order.emplace_back(line);
  return {};
}

constexpr Option kInput[] = {
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

constexpr Option kTolerance[] = {
    {"--epsilon", "X", "the same as --atol X --rtol 0",
     [](Settings& settings, std::string_view text) -> Result<void> {
       settings.request.compare.atol = TRY(parse_tolerance(text));
       settings.request.compare.rtol = 0;
       return {};
     }},
    {"--atol", "X", "absolute tolerance; default: by the coarser dtype of a pair",
     [](Settings& settings, std::string_view text) -> Result<void> {
       settings.request.compare.atol = TRY(parse_tolerance(text));
       return {};
     }},
    {"--rtol", "X", "relative tolerance, relative to a; default: as above",
     [](Settings& settings, std::string_view text) -> Result<void> {
       settings.request.compare.rtol = TRY(parse_tolerance(text));
       return {};
     }},
    {"--noise", "RUN", "a third run as good as A: errors up to three times its own are noise",
     [](Settings& settings, std::string_view path) -> Result<void> {
       settings.request.noise = path;
       return {};
     }},
    {"--equal-nan", "", "NaN at the same place is agreement (default)",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.request.compare.equal_nan = true;
       return {};
     }},
    {"--no-equal-nan", "", "NaN is a difference wherever it is",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.request.compare.equal_nan = false;
       return {};
     }},
};

constexpr auto kAcceptedOnly = [](Settings&, std::string_view) -> Result<void> { return {}; };

constexpr Option kWhat[] = {
    {"--stats", "", "a line for each changed tensor: mean and std before and after",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.stats = true;
       return {};
     }},
    {"--shape-only", "", "compare names, dtypes and shapes; read no elements",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.request.shape_only = true;
       return {};
     }},
    {"--brief", "", "only the summary",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.render.brief = true;
       return {};
     }},
    {"--diagnose", "", "tell noise from mistakes, and explain these (default)",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.request.diagnose.enabled = true;
       return {};
     }},
    {"--no-diagnose", "", "leave that out: the elementwise tolerance decides",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.request.diagnose.enabled = false;
       return {};
     }},
    {"--explain", "", "also say what was tried on each pair, and why it was rejected",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.request.diagnose.explain = true;
       return {};
     }},
    {"--order", "FILE", "names of a's tensors in the order they were computed, one a line",
     apply_order},
    {"--exit-zero", "", "exit with 0 also where something differs",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.exit_zero = true;
       return {};
     }},
};

constexpr Option kOutput[] = {
    {"-o,--output", "FORMAT", "text (default), stats, json, yaml, report or csv", apply_output},
    {"--sort", "KEY", "layer, name, similarity, difference or size", apply_sort},
    {"--sort-by-change-magnitude", "", "the same as --sort difference",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.render.sort = Sort::difference;
       return {};
     }},
    {"--show", "LIST", "of identical,close,different,unpaired,error: only these", apply_show},
    {"--top", "N", "at most so many rows; 0: all",
     [](Settings& settings, std::string_view text) -> Result<void> {
       settings.render.top = TRY(parse_count(text));
       return {};
     }},
    {"-v,--verbose", "", "every pair, and how it was brought to one layout",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.render.verbose = true;
       return {};
     }},
};

constexpr Option kSpeed[] = {
    {"--memory-limit", "BYTES", "accepted; memory does not grow with the size of the tensors",
     [](Settings&, std::string_view text) -> Result<void> {
       TRY(parse_size(text));
       return {};
     }},
    {"--stream", "", "accepted; tensors are always read in pieces", kAcceptedOnly},
};

constexpr OptionGroup kGroups[] = {
    {"input and pairing", kInput}, {"tolerance", kTolerance}, {"what", kWhat},
    {"output", kOutput},           {"speed", kSpeed},
};

const Renderer& renderer_of(const Settings& settings) {
  if (settings.stats && settings.output == "text") return renderers::stats;
  for (const Renderer* renderer : renderers::kAll)
    if (renderer->name == settings.output) return *renderer;
  return renderers::text;
}

int exit_status(const Report& report, const Settings& settings) {
  const std::string_view verdict = report.summary.verdict;
  if (verdict == "same" || verdict == "close") return kSame;
  if (verdict == "different") return settings.exit_zero ? kSame : kDifferent;
  return kTrouble;
}

Result<void> check_inputs(const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs)
    if (input == "-") return Error("'-': reading from standard input is not supported");
  if (inputs.size() == 1 || inputs.size() == 2) return {};
  return Error("needs one or two inputs, has {}", inputs.size());
}

int run(const Settings& settings, const std::vector<std::string>& inputs) {
  if (const Result<void> fit = check_inputs(inputs); !fit.ok()) return fail(fit.error());
  const Renderer& renderer = renderer_of(settings);

  Request request = settings.request;
  request.a = inputs[0];
  if (inputs.size() == 2) request.b = inputs[1];
  request.open = settings.open;
  request.unpaired_stats = renderer.unpaired_stats;

  const Result<Report> report = [&] {
    ProgressLine progress(!settings.quiet);
    if (progress.active())
      request.progress = [&](uint64_t done, uint64_t total) { progress.update(done, total); };
    return compare_models(request);
  }();
  if (!report.ok()) return fail(report.error());
  if (const Result<void> saved = save_pairs(report.value(), settings); !saved.ok())
    return fail(saved.error());

  RenderOptions options = settings.render;
  options.color = wants_color(settings);
  options.width = output_width();
  const bool shown = !settings.quiet || !settings.out.empty();
  const std::string text = shown ? renderer.render(report.value(), options) : "";
  if (const Result<void> written = deliver(text, settings); !written.ok())
    return fail(written.error());
  return exit_status(report.value(), settings);
}

}  // namespace

constinit const Command commands::compare = {
    .name = "compare",
    .usage = "tensordiff [compare] A [B] [options]",
    .summary = "compare two models, dumps, folders or archives, or the tensors of one",
    .groups = kGroups,
    .run = run,
};

}  // namespace tensordiff
