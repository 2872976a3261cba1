#include "report/divergence_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "report/answer_text.h"
#include "report/wording.h"

namespace tensordiff {
namespace {

constexpr std::size_t kLengthMax = 1000;

}  // namespace

std::optional<FirstDivergence> first_divergence(const std::vector<PairRow>& rows) {
  for (const PairRow& row : rows) {
    const Status status = row.comparison.status;
    if (status == Status::different || status == Status::incomparable)
      return FirstDivergence{row.index, false,
                             "the first pair, in display order, that is not close"};
  }
  return std::nullopt;
}

std::string place_of(const PairRow& row) {
  if (row.layer && !row.stage.empty())
    return fmt::format("in layer {} at {}", *row.layer, printable(row.stage));
  return "at " + names_of(row);
}

const Finding* finding_at(const Report& report, std::size_t pair) {
  const auto found = std::ranges::find(report.findings, pair, &Finding::pair);
  return found == report.findings.end() ? nullptr : &*found;
}

std::string cause_of(const Finding& finding) {
  std::string text = printable(finding.explanation, kLengthMax);
  const auto &before = finding.residual_before, &after = finding.residual_after;
  if (before && after && *before != *after)
    text += fmt::format("; residual {} → {}", short_number(*before), short_number(*after));
  return text;
}

std::string cause_at(const Report& report, std::size_t pair) {
  const Finding* finding = finding_at(report, pair);
  return finding ? cause_of(*finding) : printable(message_of(report.pairs[pair]), kLengthMax);
}

std::string capitalised(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 32);
  return text;
}

std::string names_of(const PairRow& row) {
  // A file of one array has no name for it.
  const auto name = [](const TensorId& id) {
    return id.name.empty() ? "the array" : printable(id.name);
  };
  const std::string a = name(row.a), b = name(row.b);
  return a == b ? a : a + " → " + b;
}

std::string needed_line(const Report& report, const Style& style) {
  const PairRow* worst = nullptr;
  for (const PairRow& row : report.pairs) {
    const Diff& diff = row.comparison.diff;
    if (diff.compared == 0) continue;
    if (!diff.rtol_needed)
      return labelled("tolerance", fmt::format("no rtol passes for {}", names_of(row)), style);
    if (!worst || *diff.rtol_needed > *worst->comparison.diff.rtol_needed) worst = &row;
  }
  if (!worst) return "";
  const double needed = *worst->comparison.diff.rtol_needed;
  if (needed == 0) return labelled("tolerance", "all within atol", style);
  return labelled("tolerance",
                  fmt::format("the smallest rtol that passes is {}, for {}", short_number(needed),
                              names_of(*worst)),
                  style);
}

std::string evidence_lines(const Report& report, std::size_t pair) {
  const Finding* finding = finding_at(report, pair);
  if (!finding || !finding->evidence) return "";
  const EvidenceSlice& slice = *finding->evidence;
  std::string place;
  for (const uint64_t index : slice.at)
    place += fmt::format("{}{}", place.empty() ? "" : ",", index);
  const auto line = [](std::string_view label, const std::vector<double>& values) {
    std::string text = fmt::format("      {:<6}", label);
    for (const double value : values) text += fmt::format("{:>12}", short_number(value));
    return values.empty() ? "" : text + "\n";
  };
  return fmt::format("    values from [{}] on\n", place) + line("A", slice.a) + line("B", slice.b) +
         line("T(A)", slice.model);
}

std::string trial_lines(const Report& report, const Style& style) {
  if (report.trials.empty()) return "";
  std::string out = "\nwhat was tried\n";
  std::optional<std::size_t> pair;
  for (const Trial& trial : report.trials) {
    if (pair && pair != trial.pair) out += evidence_lines(report, *pair);
    if (pair != trial.pair)
      out += "  " + style(Tone::bold, names_of(report.pairs[trial.pair])) + "\n";
    pair = trial.pair;
    out += fmt::format("    {:<18}{}\n", trial.code, printable(trial.outcome, kLengthMax));
  }
  return out + evidence_lines(report, *pair);
}

}  // namespace tensordiff
