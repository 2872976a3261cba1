// tensordiff logits A B: two runs of a language model, compared by what they predict.

#include "cli/command.h"
#include "cli/shared_options.h"
#include "cli/terminal.h"
#include "cli/values.h"
#include "dumps/layout.h"
#include "formats/format.h"
#include "logits/compare_logits.h"
#include "match/filter.h"
#include "naming/naming.h"
#include "report/logits_report.h"

namespace tensordiff {
namespace {

Result<void> apply_output(Settings& settings, std::string_view name) {
  constexpr std::string_view kNames[] = {"text", "json", "csv", "markdown", "html"};
  settings.output = kNames[TRY(parse_word(name, kNames))];
  return {};
}

constexpr Option kOptions[] = {
    {"-o,--output", "FORMAT", "text (default), json, csv, markdown or html", apply_output},
    shared_options::kBrief,
    {"--exit-zero", "", "exit with 0 even if predictions differ",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.exit_zero = true;
       return {};
     }},
};
constexpr OptionGroup kGroup = {"output", kOptions};
constexpr const OptionGroup* kGroups[] = {&option_groups::input, &option_groups::tolerance,
                                          &kGroup};

Result<Catalog> open_run(const Settings& settings, const std::string& path) {
  Catalog catalog = TRY(open_model(path, settings.open));
  TRY(arrange(catalog, settings.request.layout));
  const NameFilter filter =
      TRY(NameFilter::make(settings.request.paths, settings.request.ignore_regex));
  TRY(filter.apply(catalog));
  read_missing_places(catalog);
  return catalog;
}

Result<LogitsComparison> compared(const Settings& settings,
                                  const std::vector<std::string>& inputs) {
  const Catalog a = TRY(open_run(settings, inputs[0]));
  const Catalog b = TRY(open_run(settings, inputs[1]));
  return compare_logits(a, b, settings.request.rules.get());
}

std::string rendered(const LogitsComparison& comparison, const Settings& settings) {
  RenderOptions options = settings.render;
  options.color = wants_color(settings);
  options.width = output_width();
  if (settings.output == "json") return logits_json(comparison);
  if (settings.output == "csv") return logits_csv(comparison);
  if (settings.output == "markdown") return doc::markdown_of(logits_document(comparison), false);
  if (settings.output == "html") return doc::html_of(logits_document(comparison));
  return logits_text(comparison, options);
}

int run(const Settings& settings, const std::vector<std::string>& inputs) {
  if (inputs.size() != 2) return fail(Error("logits needs two runs, A and B"));
  const Result<LogitsComparison> comparison = compared(settings, inputs);
  if (!comparison.ok()) return fail(comparison.error());
  const bool shown = !settings.quiet || !settings.out.empty();
  const Result<void> written =
      deliver(shown ? rendered(comparison.value(), settings) : "", settings);
  if (!written.ok()) return fail(written.error());
  const bool different = comparison.value().verdict == LogitsVerdict::different;
  return different && !settings.exit_zero ? kDifferent : kSame;
}

}  // namespace

constinit const Command commands::logits = {
    .name = "logits",
    .usage = "tensordiff logits A B [options]",
    .summary = "compare what two runs of a language model predict",
    .groups = kGroups,
    .run = run,
};

}  // namespace tensordiff
