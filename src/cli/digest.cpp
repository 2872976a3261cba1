// tensordiff digest MODEL: what its weights are, for tensordiff MODEL.digest OTHER.

#include "cli/digest.h"

#include <fmt/format.h>

#include "base/text.h"
#include "cli/batch_state.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "digest/against.h"
#include "dumps/layout.h"
#include "match/filter.h"
#include "match/ranks.h"

namespace tensordiff {
namespace {

constexpr const OptionGroup* kGroups[] = {&option_groups::input};

Result<Digest> digest_of(const Settings& settings, const std::string& input) {
  Catalog catalog = TRY(open_model(input, settings.open));
  TRY(arrange(catalog, settings.request.layout));
  const NameFilter filter =
      TRY(NameFilter::make(settings.request.paths, settings.request.ignore_regex));
  TRY(filter.apply(catalog));
  group_ranks(catalog, 'a');
  if (catalog.tensors.empty()) return Error("{}: no tensors selected", printable(input, 1000));
  ProgressLine progress(!settings.quiet);
  if (!progress.active()) return make_digest(catalog, {});
  return make_digest(catalog, [&](uint64_t done, uint64_t total) { progress.update(done, total); });
}

// "model.safetensors" or "model/" -> "model.safetensors.digest", "model.digest"
std::string file_for(std::string input) {
  while (input.size() > 1 && input.ends_with('/')) input.pop_back();
  return input + ".digest";
}

int run(const Settings& settings, const std::vector<std::string>& inputs) {
  if (inputs.size() != 1) return fail(Error("digest needs one model, has {}", inputs.size()));
  const Result<Digest> digest = digest_of(settings, inputs[0]);
  if (!digest.ok()) return fail(digest.error());
  const std::string file = settings.out.empty() ? file_for(inputs[0]) : settings.out;
  if (const Result<void> written = write_whole(file, write_digest(digest.value())); !written.ok())
    return fail(written.error());
  if (!settings.quiet)
    say(fmt::format("tensordiff: wrote {}: {} tensor{}\n", printable(file, 1000),
                    digest.value().tensors.size(), digest.value().tensors.size() == 1 ? "" : "s"));
  return kSame;
}

Result<Digest> read_file(const std::string& path) {
  const Bytes bytes = TRY(map_file(path).in(printable(path, 1000)));
  return read_digest(bytes.view).in(printable(path, 1000));
}

Result<DigestComparison> held_against(const Settings& settings,
                                      const std::vector<std::string>& inputs) {
  const Digest a = TRY(read_file(inputs[0]));
  std::optional<Digest> earlier;
  if (!settings.earlier.empty()) earlier = TRY(read_file(settings.earlier));
  Catalog b = TRY(open_model(inputs[1], settings.open));
  return compare_digest(a, std::move(b), earlier ? &*earlier : nullptr, settings.request);
}

}  // namespace

bool is_digest_file(const std::string& path) {
  if (!path.ends_with(".digest")) return false;
  const Result<Bytes> bytes = map_file(path);
  return bytes.ok() && is_digest(bytes.value().view);
}

int run_against_digest(const Settings& settings, const std::vector<std::string>& inputs) {
  if (settings.output != "text" && settings.output != "json" && settings.output != "report")
    return fail(Error("-o {}: a digest is compared as text or json", settings.output));
  const Result<DigestComparison> found = held_against(settings, inputs);
  if (!found.ok()) return fail(found.error());
  const std::string text = settings.output == "text"
                               ? digest_text(found.value(), settings.render.verbose)
                               : digest_json(found.value());
  const bool shown = !settings.quiet || !settings.out.empty();
  if (const Result<void> written = deliver(shown ? text : "", settings); !written.ok())
    return fail(written.error());
  return found.value().same() || settings.exit_zero ? kSame : kDifferent;
}

constinit const Command commands::digest = {
    .name = "digest",
    .usage = "tensordiff digest MODEL [options]",
    .summary = "write a small digest of a model's weights, to find stale copies",
    .groups = kGroups,
    .run = run,
};

}  // namespace tensordiff
