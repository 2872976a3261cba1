// What a report comes to, in one word and its counts.

#include <fmt/format.h>

#include <algorithm>

#include "base/side.h"
#include "report/report.h"
#include "report/wire.h"

namespace tensordiff {
namespace {

static_assert(std::size(wire::kConclusionWords) == kConclusions);

uint64_t count_of(const Report& report, Status status) {
  const auto has = [&](const PairRow& row) { return row.comparison.status == status; };
  return static_cast<uint64_t>(std::ranges::count_if(report.pairs, has));
}

// Why there is not a single pair.
std::string nothing_text(const Report& report) {
  if (!report.nothing_selected.empty()) return report.nothing_selected;
  if (report.a.tensors + report.b.tensors == 0) return "0 tensors compared: both sides are empty";
  return "0 tensors compared: A and B have no tensor in common";
}

// Where nothing differs but tensors that the other side holds merged into others.
std::string merged_text(const Report& report) {
  const auto agrees = [](const PairRow& row) { return row.comparison.status < Status::different; };
  if (!std::ranges::all_of(report.pairs, agrees)) return "";
  std::string text;
  for (const char side : {'a', 'b'}) {
    const auto& only = side == 'a' ? report.only_a : report.only_b;
    const auto is_missing = [](const Report::Unpaired& tensor) {
      return tensor.is_difference() && !tensor.merged;
    };
    if (std::ranges::any_of(only, is_missing)) return "";
    if (std::ranges::any_of(only, &Report::Unpaired::merged))
      text +=
          fmt::format("{}{} has those only in {} merged into its weights, which agree",
                      text.empty() ? "" : "; ", capital(side == 'a' ? 'b' : 'a'), capital(side));
  }
  return text;
}

}  // namespace

std::string_view name_of(std::optional<Novelty> novelty) {
  return novelty ? wire::kNovelties[static_cast<std::size_t>(*novelty)] : "";
}

std::string_view name_of(Conclusion conclusion) {
  return wire::kConclusionWords[static_cast<std::size_t>(conclusion)];
}

std::optional<Conclusion> conclusion_named(std::string_view name) {
  const auto& words = wire::kConclusionWords;
  const auto found = std::ranges::find(words, name);
  if (found == std::end(words)) return std::nullopt;
  return static_cast<Conclusion>(found - words);
}

Summary summarise(const Report& report) {
  Summary summary;
  summary.identical = count_of(report, Status::identical);
  summary.equal = count_of(report, Status::equal);
  summary.close = count_of(report, Status::close);
  summary.same_shape = count_of(report, Status::same_shape);
  summary.different = count_of(report, Status::different);
  summary.incomparable = count_of(report, Status::incomparable);
  summary.error = count_of(report, Status::error);

  const auto missing = [](const Problem& problem) { return problem.severity == Severity::missing; };
  bool faulty = summary.error > 0 || std::ranges::any_of(report.a.problems, missing) ||
                std::ranges::any_of(report.b.problems, missing);
  bool differs = false, known = false;
  const auto note = [&](std::optional<Novelty> novelty) {
    (novelty == Novelty::known ? known : differs) = true;
  };
  for (const PairRow& row : report.pairs)
    if (row.comparison.status >= Status::different) note(row.novelty);
  for (const auto* side : {&report.only_a, &report.only_b}) {
    for (const Report::Unpaired& tensor : *side) {
      faulty = faulty || !tensor.id.fault.empty();
      if (tensor.is_difference()) note(tensor.novelty);
    }
  }
  for (const auto* side : {&report.auxiliary_a, &report.auxiliary_b})
    faulty = faulty || std::ranges::any_of(*side, [](const Report::Unpaired& tensor) {
               return !tensor.id.fault.empty();
             });
  // Agreement of nothing with nothing is none.
  const bool nothing = report.pairs.empty() && !differs && !known &&
                       (!report.alone || !report.nothing_selected.empty());
  summary.verdict = faulty || nothing   ? Conclusion::trouble
                    : differs           ? Conclusion::different
                    : known             ? Conclusion::known
                    : report.shape_only ? Conclusion::shapes_match
                    : summary.close > 0 ? Conclusion::close
                                        : Conclusion::same;
  if (nothing)
    summary.caveat = nothing_text(report);
  else if (report.shape_only)
    summary.caveat = differs || known ? "values not compared" : "shapes match, values not compared";
  else if (summary.verdict == Conclusion::different)
    summary.caveat = merged_text(report);
  return summary;
}

}  // namespace tensordiff
