// tensordiff check FILE...: is it whole, and is it safe to load?
//
// Opens each file and reads every byte of every tensor, so that checksums are tried and truncation
// shows. What is found has a severity, and the worst is the level of the file: unreadable where a
// part is damaged or missing, dangerous where it names code that acts when others load the file
// (nothing is run here), suspicious where it is odd: unknown names of code, stray bytes, values
// that are not finite. Tensors that share bytes are told and change nothing.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "base/parallel.h"
#include "base/remote_files.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "cli/values.h"
#include "compare/comparison.h"
#include "formats/audit.h"
#include "formats/shared_bytes.h"
#include "report/json_values.h"
#include "report/style.h"
#include "report/wording.h"

namespace tensordiff {
namespace {

// The levels that --fail-on takes; anything unreadable fails whatever it says.
constexpr std::pair<std::string_view, Severity> kLevels[] = {
    {"suspicious", Severity::suspicious},
    {"dangerous", Severity::dangerous},
    {"unreadable", Severity::unreadable},
};

Result<void> set_fail_on(Settings& settings, std::string_view word) {
  std::vector<std::string_view> words;
  for (const auto& [name, severity] : kLevels) words.push_back(name);
  settings.fail_on = kLevels[TRY(parse_word(word, words))].second;
  return {};
}

constexpr Option kOptions[] = {
    {"--fail-on", "LEVEL", "exit 1 at this level: suspicious (default), dangerous, unreadable",
     set_fail_on},
    {"--structure", "", "read indexes only: no values, no checksums",
     [](Settings&, std::string_view) -> Result<void> { return {}; }},
    {"-o,--output", "FORMAT", "text (default) or json", set_text_or_json},
};

constexpr OptionGroup kGroup = {"output", kOptions};
constexpr const OptionGroup* kGroups[] = {&kGroup};

constexpr std::size_t kSharedMax = 20;  // Tensors that share bytes, as text.

struct Verdict {
  std::string path;
  bool found = true;  // There is a file or folder of that name.
  std::string format;
  uint64_t tensors = 0, bytes = 0;
  std::vector<Problem> problems;
  struct NonFinite {
    std::string name;
    uint64_t nan, inf;
  };
  std::vector<NonFinite> nonfinite;
  std::vector<Problem> shared;

  // The worst of all that was found; note where all is well.
  Severity level() const {
    Severity worst = nonfinite.empty() ? Severity::note : Severity::suspicious;
    for (const Problem& problem : problems) worst = std::max(worst, problem.severity);
    return std::min(worst, Severity::unreadable);
  }
  bool ok() const { return found && level() == Severity::note; }
  std::string_view word() const {
    if (!found) return "not found";
    return ok() ? "ok" : name_of(level());
  }
};

// Says each thing once, whoever found it.
void add_problems(std::vector<Problem> found, Verdict& verdict) {
  for (Problem& problem : found) {
    const bool known = std::ranges::any_of(verdict.problems, [&](const Problem& other) {
      return other.message == problem.message &&
             (other.where == problem.where || other.where.empty() || problem.where.empty());
    });
    if (!known) verdict.problems.push_back(std::move(problem));
  }
}

// `whole`: also what takes reading every byte.
Verdict examine(const std::string& path, const OpenOptions& options, bool whole) {
  Verdict verdict;
  verdict.path = shown_input(path);
  const Result<Catalog> opened = open_model(path, options);
  if (!opened.ok()) {
    std::error_code fault;
    verdict.found = is_remote(path) || std::filesystem::exists(path, fault);
    verdict.problems.push_back({verdict.path, opened.error().message(), Severity::unreadable});
    add_problems(audit_model(path, options), verdict);
    return verdict;
  }
  const Catalog& catalog = opened.value();
  verdict.format = catalog.format;
  verdict.tensors = catalog.tensors.size();
  verdict.bytes = catalog.bytes();
  verdict.problems = catalog.problems;
  verdict.shared = shared_bytes(catalog);
  if (!whole) return verdict;
  add_problems(audit_model(path, options), verdict);

  std::vector<Stats> stats(catalog.tensors.size());
  std::vector<std::string> faults(catalog.tensors.size());
  for_each_index(stats.size(), [&](std::size_t i) {
    faults[i] = catalog.tensors[i].fault;
    if (!faults[i].empty()) return;
    Result<Stats> measured = statistics(catalog.tensors[i].view);
    if (measured.ok())
      stats[i] = std::move(measured).value();
    else
      faults[i] = measured.error().message();
  });
  for (std::size_t i = 0; i < stats.size(); ++i) {
    const std::string& name = catalog.tensors[i].name;
    if (!faults[i].empty()) verdict.problems.push_back({name, faults[i], Severity::unreadable});
    if (stats[i].nan + stats[i].inf > 0)
      verdict.nonfinite.push_back({name, stats[i].nan, stats[i].inf});
  }
  std::ranges::stable_sort(verdict.problems, std::greater(), &Problem::severity);
  return verdict;
}

std::string as_text(const Verdict& verdict, const Style& style) {
  const Tone tone = verdict.level() == Severity::note         ? Tone::good
                    : verdict.level() == Severity::suspicious ? Tone::trouble
                                                              : Tone::bad;
  std::string out = style(tone, std::string(verdict.word()));
  out += "  " + printable(verdict.path);
  if (!verdict.format.empty())
    out += style(Tone::dim,
                 fmt::format("  {}, {}, {}", verdict.format, counted(verdict.tensors, "tensor"),
                             human_bytes(verdict.bytes)));
  out += "\n";
  const auto line = [&](Severity severity, std::string_view where, std::string_view message) {
    // An error that already begins with where it happened does not say it twice.
    const bool named = where.empty() || message.starts_with(where);
    out += fmt::format("    {}: {}{}\n", name_of(severity), named ? "" : printable(where) + ": ",
                       printable(message, 1000));
  };
  for (const Problem& problem : verdict.problems)
    if (verdict.found) line(problem.severity, problem.where, problem.message);
  for (const Verdict::NonFinite& tensor : verdict.nonfinite)
    line(Severity::suspicious, tensor.name,
         fmt::format("{} NaN, {} infinite", human_count(tensor.nan), human_count(tensor.inf)));
  for (std::size_t i = 0; i < verdict.shared.size() && i < kSharedMax; ++i)
    out +=
        fmt::format("    {}: {}\n", printable(verdict.shared[i].where), verdict.shared[i].message);
  if (verdict.shared.size() > kSharedMax)
    out += fmt::format("    and {} more that share bytes\n", verdict.shared.size() - kSharedMax);
  return out;
}

void write_verdict(JsonWriter& json, const Verdict& verdict) {
  json.begin_object().member("path", verdict.path).member("format", verdict.format);
  json.member("ok", verdict.ok()).member("level", verdict.word());
  json.member("tensors", verdict.tensors);
  json.member("bytes", verdict.bytes).key("nonfinite").begin_array();
  for (const Verdict::NonFinite& tensor : verdict.nonfinite) {
    json.begin_object().member("name", tensor.name);
    json.member("nan", tensor.nan).member("inf", tensor.inf).end_object();
  }
  json.end_array().key("shared").begin_array();
  for (const Problem& tensor : verdict.shared)
    json.begin_object().member("name", tensor.where).member("with", tensor.message).end_object();
  json.end_array().key("problems");
  write_problems(json, verdict.problems);
  json.end_object();
}

int run(const Settings& settings, const std::vector<std::string>& inputs) {
  if (inputs.empty()) return fail(Error("check needs a file"));
  const Style style(wants_color(settings));
  JsonWriter json(JsonWriter::Style::indented);
  std::string text;
  Severity worst = Severity::note;
  const bool whole = std::ranges::find(settings.given, "structure", &Settings::Given::name) ==
                     settings.given.end();
  json.begin_object().key("files").begin_array();
  for (const std::string& input : inputs) {
    const Verdict verdict = examine(input, settings.open, whole);
    worst = std::max(worst, verdict.level());
    text += as_text(verdict, style);
    write_verdict(json, verdict);
  }
  json.end_array().end_object();
  if (settings.output == "json") text = json.take() + "\n";
  if (const Result<void> written = deliver(text, settings); !written.ok())
    return fail(written.error());
  if (worst == Severity::unreadable) return kTrouble;
  return worst >= settings.fail_on ? kDifferent : kSame;
}

}  // namespace

constinit const Command commands::check = {
    .name = "check",
    .usage = "tensordiff check FILE... [options]",
    .summary = "check integrity and list embedded code",
    .groups = kGroups,
    .run = run,
};

}  // namespace tensordiff
