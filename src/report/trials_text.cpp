#include "report/trials_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "report/divergence_text.h"
#include "report/text_chart.h"
#include "report/wording.h"

namespace tensordiff {
namespace {

constexpr std::size_t kLengthMax = 1000;
constexpr std::size_t kNamesMax = 3;  // Of a group of pairs, those that are named.
constexpr std::string_view kAccepted = "accepted";

TrialGroup::Outcome outcome_of(const Trial& trial) {
  const std::string_view text = trial.outcome;
  const std::size_t colon = text.find(": ");
  if (colon == std::string_view::npos) return {text, "", {trial.code}};
  return {text.substr(0, colon), text.substr(colon + 2), {trial.code}};
}

void add(const Trial& trial, TrialGroup& group) {
  TrialGroup::Outcome outcome = outcome_of(trial);
  const auto same = std::ranges::find_if(group.outcomes, [&](const TrialGroup::Outcome& known) {
    return known.label == outcome.label && known.reason == outcome.reason;
  });
  if (same != group.outcomes.end())
    same->codes.push_back(trial.code);
  else if (outcome.label == kAccepted)
    group.outcomes.insert(group.outcomes.begin(), std::move(outcome));
  else
    group.outcomes.push_back(std::move(outcome));
}

std::string key_of(const TrialGroup& group) {
  std::string key;
  for (const TrialGroup::Outcome& outcome : group.outcomes)
    key += fmt::format("{}\n{}\n", outcome.label, outcome_text(outcome));
  return key;
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

}  // namespace

std::vector<TrialGroup> trial_groups(const Report& report) {
  std::vector<TrialGroup> of_pairs;
  for (const Trial& trial : report.trials) {
    if (of_pairs.empty() || of_pairs.back().pairs[0] != trial.pair)
      of_pairs.push_back({{trial.pair}, {}});
    add(trial, of_pairs.back());
  }
  std::vector<TrialGroup> groups;
  std::map<std::string, std::size_t> known;
  for (TrialGroup& each : of_pairs) {
    // What was accepted has values of its own to show.
    const bool accepted = each.outcomes[0].label == kAccepted;
    const auto [at, is_new] =
        accepted ? std::pair(known.end(), true) : known.try_emplace(key_of(each), groups.size());
    if (is_new)
      groups.push_back(std::move(each));
    else
      groups[at->second].pairs.push_back(each.pairs[0]);
  }
  return groups;
}

std::string outcome_text(const TrialGroup::Outcome& outcome) {
  std::string text;
  for (const std::string_view code : outcome.codes) {
    if (!text.empty()) text += ", ";
    text += code;
  }
  if (!outcome.reason.empty()) text += ": " + printable(outcome.reason, kLengthMax);
  return text;
}

std::string pairs_text(const TrialGroup& group, const Report& report) {
  std::string names;
  for (std::size_t i = 0; i < std::min(kNamesMax, group.pairs.size()); ++i)
    names += (names.empty() ? "" : ", ") + names_of(report.pairs[group.pairs[i]]);
  if (group.pairs.size() > kNamesMax)
    names += fmt::format(" and {} more", human_count(group.pairs.size() - kNamesMax));
  return names;
}

std::string trial_lines(const Report& report, const Style& style, std::size_t width) {
  if (report.trials.empty()) return "";
  const std::vector<TrialGroup> groups = trial_groups(report);
  std::size_t labels = 0;
  for (const TrialGroup& group : groups)
    for (const TrialGroup::Outcome& outcome : group.outcomes)
      labels = std::max(labels, columns(outcome.label) + 2);
  const std::string indent(4 + labels, ' ');
  std::string out = "\nwhat was tried\n";
  for (const TrialGroup& group : groups) {
    out += "  " + style(Tone::bold, pairs_text(group, report)) + "\n";
    for (const TrialGroup::Outcome& outcome : group.outcomes) {
      const std::string text = wrapped(outcome_text(outcome), width, indent, indent.size());
      out += fmt::format("    {:<{}}{}\n", outcome.label, labels, text);
    }
    out += evidence_lines(report, group.pairs[0]);
  }
  return out;
}

}  // namespace tensordiff
