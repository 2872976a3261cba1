#include "diagnose/verdict/explain.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "diagnose/hypotheses/branch_alone.h"
#include "diagnose/noise/growth.h"
#include "diagnose/noise/norms.h"
#include "diagnose/operators/routing.h"
#include "diagnose/replay/expected.h"
#include "diagnose/replay/linear_replay.h"
#include "diagnose/replay/norm_size.h"
#include "diagnose/sample/evidence_slice.h"
#include "diagnose/verdict/carried.h"
#include "diagnose/verdict/size_apart.h"

namespace tensordiff {
namespace {

constexpr double kMostlyShared = 0.8;  // Of the error of all tokens, what one vector leaves.

Finding finding_of(const Diagnosis& diagnosis, const Case& it, Explanation explanation) {
  Finding finding;
  finding.code = diagnosis.code;
  finding.pair = it.site.index;
  finding.explanation = std::move(explanation.text);
  finding.parameters = std::move(explanation.parameters);
  finding.residual_before = explanation.before.value_or(it.before);
  finding.residual_after = explanation.after;
  finding.evidence = evidence_of(it, explanation.model);
  return finding;
}

std::string outcome_of(const Case& it, const std::optional<Explanation>& explanation, bool accept) {
  if (!explanation) return "does not apply";
  const std::string text = fmt::format("{}: {}; leaves {}", accept ? "accepted" : "rejected",
                                       explanation->text, human_number(explanation->after));
  if (accept) return text;
  const double most = most_left(it, *explanation);
  return explanation->after <= most ? text + ", but its inputs already differ like that"
                                    : fmt::format("{}, more than {}", text, human_number(most));
}

// What is no number is told where it is made.
bool of_carried(const Diagnosis& d) { return &d != &diagnoses::nonfinite; }

}  // namespace

bool of_values(const Diagnosis& d) {
  return &d != &diagnoses::operator_step && &d != &diagnoses::precision_noise;
}

void explain(const Case& it, const DiagnoseOptions& options, const Wanted& wanted, Told& told) {
  for (const Diagnosis* diagnosis : diagnoses::kAll) {
    if (told.finding || !wanted(*diagnosis)) continue;
    // Weights have no noise of their own: moving values keeps their extremes and their norm.
    const bool other_values = diagnosis->layout && !it.run.activations && !may_be_moved(it.site);
    std::optional<Explanation> explanation = other_values ? std::nullopt : diagnosis->examine(it);
    const bool accept = explanation && (it.carried > 0 ? made_there(it, *diagnosis, *explanation)
                                                       : accepted(it, *explanation));
    if (options.explain)
      told.trials.push_back(
          {it.site.index, std::string(diagnosis->code), outcome_of(it, explanation, accept)});
    if (accept) told.finding = finding_of(*diagnosis, it, std::move(*explanation));
  }
}

void explain_blanks(const Run& run, const Site& site, Told& told) {
  const std::vector<uint64_t> tokens = blank_tokens(run, site);
  const std::optional<Case> it = tokens.empty() ? std::nullopt : values_of(run, site);
  if (!it) return;
  told.finding = finding_of(diagnoses::region, *it, region_of(*it, tokens));
  told.made_here = true;
}

namespace {

// Another weight, bias or activation than a's.
void explain_by_weights(const Case& it, const DiagnoseOptions& options, Told& told) {
  std::optional<Explanation> found = replay_weights(it);
  if (!found) return;
  if (options.explain)
    told.trials.push_back(
        {it.site.index, std::string(diagnoses::operator_step.code), outcome_of(it, found, true)});
  told.finding = finding_of(diagnoses::operator_step, it, std::move(*found));
}

// What the weights of a norm say of the size of its tokens.
void explain_by_size(const Run& run, const Site& site, Told& told) {
  const std::optional<Case> it =
      run.weights.empty() || !is_norm(site.role) ? std::nullopt : values_of(run, site);
  std::optional<NormMistake> found = it ? wrong_size(*it) : std::nullopt;
  if (!found) return;
  told.finding = finding_of(*found->diagnosis, *it, std::move(found->explanation));
  told.made_here = true;
}

// Where a's way of computing the step is known, b's own inputs tell what should have come out.
void explain_by_own_inputs(const Case& it, Expected expected, const DiagnoseOptions& options,
                           Told& told) {
  told.made_here = true;
  const auto replays = [&](const Diagnosis& d) {
    return d.replays || (&d == &diagnoses::norm_weight && it.rotary);
  };
  explain(it, options, replays, told);
  if (!told.finding) explain_by_weights(it, options, told);
  if (!told.finding) explain_by_size(it.run, it.site, told);
  if (told.finding) return;
  Case own(it.run, it.site, std::move(expected.made), std::move(expected.b));
  measure(own);
  own.floor = expected.floor;
  own.own = true;
  // What is wrong may lie behind the tokens that were computed again.
  if (own.before <= own.floor) explain_blanks(it.run, it.site, told);
  if (told.finding) return;
  explain(
      own, options, [&](const Diagnosis& d) { return !replays(d) && of_carried(d); }, told);
}

// Tokens that are off by more than what comes in accounts for: all of them, or a part.
std::optional<Finding> found_by_growth(const Case& it, const Outgrown& outgrown) {
  if (outgrown.tokens.empty()) return std::nullopt;
  if (!outgrown.all) return finding_of(diagnoses::region, it, region_of(it, outgrown.tokens));
  std::optional<Explanation> step = diagnoses::operator_step.examine(it);
  return step ? std::optional(finding_of(diagnoses::operator_step, it, std::move(*step)))
              : std::nullopt;
}

// What can tell an error of its own from what came in: a region may be just that.
bool tells_from_carried(const Diagnosis& d) {
  return !d.replays && of_values(d) && of_carried(d) && &d != &diagnoses::residual_missing &&
         &d != &diagnoses::region;
}

// Where it is not known what should have come out: a glance first, since most have no error.
void explain_by_output(const Run& run, const DiagnoseOptions& options, const Site& site,
                       Told& told) {
  const Glance glance(run, site);
  if (auto alone = glance.tokens() ? branch_alone(*glance.tokens()) : std::nullopt) {
    told.finding = finding_of(diagnoses::residual_missing, *glance.tokens(), std::move(*alone));
    told.made_here = true;
    return;
  }
  if (!worth_a_look(run, site)) return;
  std::vector<const Diagnosis*> promising;
  for (const Diagnosis* diagnosis : diagnoses::kAll) {
    if (!tells_from_carried(*diagnosis)) continue;
    if (glance.promises(*diagnosis))
      promising.push_back(diagnosis);
    else if (options.explain)
      told.trials.push_back(
          {site.index, std::string(diagnosis->code), "rejected: does not fit a sample"});
  }
  const Outgrown outgrown = outgrown_tokens(run, site);
  if (promising.empty() && outgrown.tokens.empty()) return;
  std::optional<Case> it = values_of(run, site);
  if (!it) return;
  it->carried = carried_into(run, site);
  it->floor = std::max(site.budget, kStandsOut * it->carried);
  const auto wanted = [&](const Diagnosis& d) {
    return std::ranges::find(promising, &d) != promising.end();
  };
  explain(*it, options, wanted, told);
  if (!told.finding) told.finding = found_by_growth(*it, outgrown);
  told.made_here = told.finding.has_value();
}

// Far more than what comes in can account for is explained as if that agreed.
void explain_standing_out(const Run& run, const DiagnoseOptions& options, const Site& site,
                          double limit, Told& told) {
  std::optional<Case> it = make_case(run, site);
  if (!it || !rerouted_tokens(run, site, limit).empty()) return;
  it->floor = limit;
  explain(*it, options, of_carried, told);
  told.made_here = told.finding.has_value();
}

// Far more than the same step makes of what comes in in other layers. One vector that all tokens
// are off by says nothing: what it meets in the weights of a layer may be larger than all else.
void explain_out_of_line(const Run& run, const DiagnoseOptions& options, const Site& site,
                         Told& told) {
  const std::optional<Case> it = out_of_line(run, site) ? values_of(run, site) : std::nullopt;
  if (!it) return;
  const std::optional<Explanation> shared = diagnoses::offset.examine(*it);
  if (shared && shared->after < kMostlyShared * it->before) return;
  explain_standing_out(run, options, site, carried_into(run, site), told);
}

void explain_by_ratio(const Run& run, const Site& site, Told& told) {
  const std::optional<Case> it = may_be_apart(run, site) ? values_of(run, site) : std::nullopt;
  std::optional<Explanation> found = it ? size_apart(*it) : std::nullopt;
  if (!found) return;
  told.finding = finding_of(diagnoses::scale, *it, std::move(*found));
  told.made_here = true;
}

}  // namespace

Told explain_carried(const Run& run, const DiagnoseOptions& options, const Site& site) {
  Told told;
  // An expert behind a mistake gets other tokens, and nothing is known of which.
  if (site.a.place.expert >= 0) return told;
  std::optional<Expected> expected = expected_of(run, site);
  // Of a step that nothing is known of, what comes in accounts for anything.
  if (!expected && site.role == Role::other) return told;
  if (!expected) {
    const double limit = most_carried(run, site);
    if (site.error > limit)
      explain_standing_out(run, options, site, limit, told);
    else if (worth_a_look(run, site) || is_norm(site.role))
      explain_by_output(run, options, site, told);
  } else if (!expected->met()) {
    const std::optional<Case> it = make_case(run, site);
    if (it) explain_by_own_inputs(*it, std::move(*expected), options, told);
  }
  if (!told.made_here) explain_blanks(run, site, told);
  if (!told.made_here && !expected) explain_by_ratio(run, site, told);
  if (!told.made_here) explain_by_size(run, site, told);
  if (!told.made_here && !expected) explain_out_of_line(run, options, site, told);
  return told;
}

}  // namespace tensordiff
