// How the result is shown.

#include "base/byte_source.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/values.h"

namespace tensordiff {
namespace {

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
  constexpr std::string_view kWords[] = {"identical", "close", "different",
                                         "unpaired",  "error", "same_shape"};
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
      case 5:
        show.insert(Status::same_shape);
        break;
      default:
        show.insert(Status::error);
        break;
    }
  }
  settings.render.show = show;
  return {};
}

Result<void> apply_baseline(Settings& settings, std::string_view file) {
  const Bytes bytes = TRY(map_file(std::string(file)).in(printable(file)));
  settings.baseline = std::make_shared<const Baseline>(
      TRY(Baseline::parse(as_text(bytes.view)).in(printable(file))));
  settings.request.analyze.baseline = as_text(bytes.view);  // For --regression-test.
  return {};
}

constexpr Option kOptions[] = {
    {"-o,--output", "FORMAT",
     "text (default), stats, json, yaml, report, csv, markdown, html, junit", apply_output},
    {"--generate-report", "", "write a full report; --out's suffix sets the format",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.full_report = true;
       return {};
     }},
    {"--markdown-output", "", "same as -o markdown",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.output = renderers::markdown.name;
       return {};
     }},
    {"--include-charts", "", "add charts to Markdown (HTML always has them)",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.render.charts = true;
       return {};
     }},
    {"--review-friendly", "", "print half a page: what changed and what to check",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.render.review = true;
       return {};
     }},
    {"--baseline", "FILE", "an earlier -o report; only new differences count", apply_baseline},
    {"--sort", "KEY", "sort by layer, name, similarity, difference, size", apply_sort},
    {"--sort-by-change-magnitude", "", "same as --sort difference",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.render.sort = Sort::difference;
       return {};
     }},
    {"--show", "LIST", "show only these, such as different,unpaired,error", apply_show},
    {"--top", "N", "show at most N rows; 0 shows all",
     [](Settings& settings, std::string_view text) -> Result<void> {
       settings.render.top = TRY(parse_count(text));
       return {};
     }},
    {"-v,--verbose", "", "show every pair and how its layouts were matched",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.render.verbose = true;
       return {};
     }},
};

}  // namespace

constinit const OptionGroup option_groups::output = {.title = "output", .options = kOptions};

}  // namespace tensordiff
