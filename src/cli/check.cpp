// tensordiff check FILE...: is it whole, and is it safe to load?
//
// Opens each file and reads every byte of every tensor, so that checksums are tried and truncation
// shows. Bytes that belong to nothing, a second file in the same bytes, a name that promises
// something else, and code that a file asks to run (named and never run) are faults. Non-finite
// values and tensors that share bytes are told and are none.

#include <fmt/format.h>

#include <algorithm>

#include "base/parallel.h"
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

constexpr Option kOptions[] = {
    {"-o,--output", "FORMAT", "text (default) or json", set_text_or_json},
};

constexpr OptionGroup kGroup = {"output", kOptions};
constexpr const OptionGroup* kGroups[] = {&kGroup};

constexpr std::size_t kSharedMax = 20;  // Tensors that share bytes, as text.

struct Verdict {
  std::string path;
  std::string format;
  uint64_t tensors = 0, bytes = 0;
  std::vector<Problem> problems;
  struct NonFinite {
    std::string name;
    uint64_t nan, inf;
  };
  std::vector<NonFinite> nonfinite;
  std::vector<Problem> shared;

  bool ok() const { return problems.empty(); }
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

Verdict examine(const std::string& path, const OpenOptions& options) {
  Verdict verdict;
  verdict.path = path;
  const Result<Catalog> opened = open_model(path, options);
  if (!opened.ok()) {
    verdict.problems.push_back({path, opened.error().message()});
    add_problems(audit_model(path, options), verdict);
    return verdict;
  }
  const Catalog& catalog = opened.value();
  verdict.format = catalog.format;
  verdict.tensors = catalog.tensors.size();
  verdict.bytes = catalog.bytes();
  verdict.problems = catalog.problems;
  add_problems(audit_model(path, options), verdict);
  verdict.shared = shared_bytes(catalog);

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
    if (!faults[i].empty()) verdict.problems.push_back({name, faults[i]});
    if (stats[i].nan + stats[i].inf > 0)
      verdict.nonfinite.push_back({name, stats[i].nan, stats[i].inf});
  }
  return verdict;
}

std::string as_text(const Verdict& verdict, const Style& style) {
  std::string out = verdict.ok() ? style(Tone::good, "ok") : style(Tone::bad, "bad");
  out += "  " + printable(verdict.path);
  if (!verdict.format.empty())
    out += style(Tone::dim,
                 fmt::format("  {}, {}, {}", verdict.format, counted(verdict.tensors, "tensor"),
                             human_bytes(verdict.bytes)));
  out += "\n";
  for (const Problem& problem : verdict.problems) {
    // An error that already begins with where it happened does not say it twice.
    const bool named = problem.where.empty() || problem.message.starts_with(problem.where);
    out += fmt::format("    {}{}\n", named ? "" : printable(problem.where) + ": ",
                       printable(problem.message, 1000));
  }
  for (const Verdict::NonFinite& tensor : verdict.nonfinite)
    out += fmt::format("    {}: {} NaN, {} infinite\n", printable(tensor.name),
                       human_count(tensor.nan), human_count(tensor.inf));
  for (std::size_t i = 0; i < verdict.shared.size() && i < kSharedMax; ++i)
    out +=
        fmt::format("    {}: {}\n", printable(verdict.shared[i].where), verdict.shared[i].message);
  if (verdict.shared.size() > kSharedMax)
    out += fmt::format("    and {} more that share bytes\n", verdict.shared.size() - kSharedMax);
  return out;
}

void write_verdict(JsonWriter& json, const Verdict& verdict) {
  json.begin_object().member("path", verdict.path).member("format", verdict.format);
  json.member("ok", verdict.ok()).member("tensors", verdict.tensors);
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
  bool all_ok = true;
  json.begin_object().key("files").begin_array();
  for (const std::string& input : inputs) {
    const Verdict verdict = examine(input, settings.open);
    all_ok &= verdict.ok();
    text += as_text(verdict, style);
    write_verdict(json, verdict);
  }
  json.end_array().end_object();
  if (settings.output == "json") text = json.take() + "\n";
  if (const Result<void> written = deliver(text, settings); !written.ok())
    return fail(written.error());
  return all_ok ? kSame : kTrouble;
}

}  // namespace

constinit const Command commands::check = {
    .name = "check",
    .usage = "tensordiff check FILE... [options]",
    .summary = "whole and safe? structure, checksums, non-finite values, code that was not run",
    .groups = kGroups,
    .run = run,
};

}  // namespace tensordiff
