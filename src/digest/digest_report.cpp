// What holding a model against a digest gave, for people and for programs.

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/text.h"
#include "digest/against.h"

namespace tensordiff {
namespace {

constexpr std::string_view kWords[] = {"same", "stale", "changed", "missing", "extra", "unknown"};
static_assert(std::size(kWords) == kFreshnesses);

std::string number(const std::optional<double>& value) {
  return value ? human_number(*value) : "none";
}

std::string line_of(const TensorState& each) {
  std::string line = fmt::format("  {:<9}{}", name_of(each.state),
                                 printable(each.a.empty() ? each.b : each.a, 1000));
  if (!each.a.empty() && !each.b.empty() && each.a != each.b)
    line += fmt::format("  (B: {})", printable(each.b, 1000));
  if ((each.state == Freshness::changed || each.state == Freshness::stale) && each.stats_b.norm)
    line += fmt::format("  norm {} -> {}, mean {} -> {}", number(each.stats_a.norm),
                        number(each.stats_b.norm), number(each.stats_a.mean),
                        number(each.stats_b.mean));
  if (!each.note.empty()) line += fmt::format("  {}", printable(each.note, 1000));
  return line + "\n";
}

}  // namespace

std::string_view name_of(Freshness freshness) {
  return kWords[static_cast<std::size_t>(freshness)];
}

std::string digest_text(const DigestComparison& comparison, bool verbose) {
  const auto counts = comparison.counts();
  std::string list;
  for (std::size_t i = 0; i < kFreshnesses; ++i)
    if (counts[i] > 0)
      list += fmt::format("{}{} {}", list.empty() ? "" : ", ", counts[i], kWords[i]);
  std::string out = fmt::format(
      "{}  {} tensor{}: {}\n", comparison.same() ? "SAME" : "DIFFERENT", comparison.tensors.size(),
      comparison.tensors.size() == 1 ? "" : "s", list.empty() ? "none" : list);
  out += fmt::format("A  digest of {}\nB  {}\n", printable(comparison.a, 1000),
                     printable(comparison.b, 1000));
  for (const TensorState& each : comparison.tensors)
    if (verbose || each.state != Freshness::same) out += line_of(each);
  return out;
}

std::string digest_json(const DigestComparison& comparison) {
  JsonWriter json(JsonWriter::Style::indented);
  json.begin_object().member("schema", "tensordiff.digest-report/1");
  json.member("verdict", comparison.same() ? "same" : "different");
  json.member("a", comparison.a).member("b", comparison.b).key("counts").begin_object();
  const auto counts = comparison.counts();
  for (std::size_t i = 0; i < kFreshnesses; ++i) json.member(kWords[i], uint64_t{counts[i]});
  json.end_object().key("tensors").begin_array();
  for (const TensorState& each : comparison.tensors) {
    json.begin_object().member("state", name_of(each.state));
    json.member("a", each.a).member("b", each.b);
    json.member("norm_a", each.stats_a.norm).member("norm_b", each.stats_b.norm);
    json.member("mean_a", each.stats_a.mean).member("mean_b", each.stats_b.mean);
    json.member("note", each.note).end_object();
  }
  json.end_array().end_object();
  return json.take() + "\n";
}

}  // namespace tensordiff
