// tensordiff compare A B: pairs the tensors of two inputs, compares them and shows the result.

#include <malloc.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>

#include "base/parallel.h"
#include "cli/command.h"
#include "cli/comparing.h"
#include "cli/digest.h"
#include "cli/part.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "pipeline.h"

namespace tensordiff {
namespace {

constexpr const OptionGroup* kGroups[] = {
    &option_groups::input,  &option_groups::pairing,   &option_groups::tolerance,
    &option_groups::what,   &option_groups::diagnosis, &option_groups::analyses,
    &option_groups::output, &option_groups::speed,
};

// What most people need: two screens of help. The rest stands in --help-all.
constexpr std::string_view kUsual[] = {
    "path",     "ignore-keys-regex", "layout", "pairs",  "tp",         "dims",  "atol",
    "rtol",     "tolerance-file",    "noise",  "stats",  "shape-only", "brief", "no-diagnose",
    "explain",  "weights",           "config", "output", "baseline",   "sort",  "show",
    "top",      "verbose",           "format", "out",    "threads",    "quiet", "help",
    "help-all",
};

// What was paired, for --pairs to read.
Result<void> save_pairs(const Report& report, const Settings& settings) {
  if (settings.save_pairs.empty()) return {};
  std::vector<NamePair> pairs;
  for (const PairRow& row : report.pairs) pairs.push_back({row.a.name, row.b.name});
  Settings to_file = settings;
  to_file.out = settings.save_pairs;
  return deliver(pairs_text(pairs), to_file);
}

// Of one file. A core compares two such in a tenth of a millisecond.
constexpr std::uintmax_t kSmall = 256 << 10;

// Whether all are files that are compared before threads have started.
bool are_small(const std::vector<std::string>& inputs) {
  return std::ranges::all_of(inputs, [](const std::string& input) {
    std::error_code fault;
    const std::uintmax_t size = std::filesystem::file_size(input, fault);
    return !fault && size <= kSmall;
  });
}

// Diagnosis takes matrices of a few megabytes and gives them back, thousands of times. Kept by the
// process, they need not be mapped and cleared each time.
void keep_matrices() {
  constexpr int kMatrix = 32 << 20, kKept = 128 << 20;  // The largest, and of each thread in all.
  mallopt(M_MMAP_THRESHOLD, kMatrix);
  mallopt(M_TRIM_THRESHOLD, kKept);
}

int run(const Settings& settings, const std::vector<std::string>& inputs) {
  if (const Result<void> fit = check_inputs(settings, inputs); !fit.ok()) return fail(fit.error());
  if (inputs.size() == 2 && is_digest_file(inputs[0])) return run_against_digest(settings, inputs);
  if (settings.part) return run_part(settings, inputs);
  if (settings.threads == 0 && are_small(inputs)) set_threads(1);
  keep_matrices();
  const Result<Report> report = [&] {
    ProgressLine progress(!settings.quiet);
    if (!progress.active()) return compare_inputs(settings, inputs, {});
    return compare_inputs(settings, inputs,
                          [&](uint64_t done, uint64_t total) { progress.update(done, total); });
  }();
  if (!report.ok()) return fail(report.error());
  if (const Result<void> saved = save_pairs(report.value(), settings); !saved.ok())
    return fail(saved.error());

  return show_report(report.value(), settings);
}

}  // namespace

constinit const Command commands::compare = {
    .name = "compare",
    .usage = "tensordiff [compare] A B [options]",
    .summary = "compare two models, dumps, folders or archives",
    .groups = kGroups,
    .usual = kUsual,
    .run = run,
};

}  // namespace tensordiff
