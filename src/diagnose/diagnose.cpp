#include "diagnose/diagnose.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/parallel.h"
#include "base/text.h"
#include "diagnose/branch_alone.h"
#include "diagnose/carried.h"
#include "diagnose/diagnosis.h"
#include "diagnose/evidence_slice.h"
#include "diagnose/expected.h"
#include "diagnose/heads.h"
#include "diagnose/linear_replay.h"
#include "diagnose/noise.h"
#include "diagnose/norms.h"
#include "diagnose/routing.h"

namespace tensordiff {
namespace {

// Explaining is for reading; after so many it is enough, and it must not outlast the comparison.
constexpr std::size_t kExplainedMax = 24;
constexpr std::size_t kConventionsMax = 1024;
constexpr std::size_t kLooksMax = 96;  // Sites with bad inputs that a alone can tell something of.
// A convention is undone by what reads it: the error there is that before, grown as noise grows.
constexpr double kGrowthBehind = 4;
constexpr double kRoundoffsBehind = 4;
constexpr double kGrowthOfLayout =
    1.2;  // At least: another layout is farther off than what comes in.

Finding finding_of(const Diagnosis& diagnosis, const Case& it, Explanation explanation) {
  Finding finding;
  finding.code = diagnosis.code;
  finding.pair = it.site.pair;
  finding.confidence = explanation.confidence;
  finding.explanation = std::move(explanation.text);
  finding.parameters = std::move(explanation.parameters);
  finding.residual_before = explanation.before.value_or(it.before);
  finding.residual_after = explanation.after;
  finding.evidence = evidence_of(it, explanation.model);
  return finding;
}

using Wanted = std::function<bool(const Diagnosis&)>;

// A site to explain, and by which diagnoses.
struct Task {
  const Site* site;
  Wanted wanted;         // Empty: by none.
  bool carries = false;  // What goes into it differs, and it may do no more than carry that on.
};

struct Told {
  std::optional<Finding> finding;
  bool made_here = false;  // Of a site that may only carry: it does more.
  std::vector<Trial> trials;
};

std::string outcome_of(const Case& it, const std::optional<Explanation>& explanation, bool accept) {
  if (!explanation) return "does not apply";
  const std::string text = fmt::format("{}: {}; leaves {}", accept ? "accepted" : "rejected",
                                       explanation->text, human_number(explanation->after));
  if (accept) return text;
  const double most = most_left(it, *explanation);
  return explanation->after <= most ? text + ", but it came in like that"
                                    : fmt::format("{}, more than {}", text, human_number(most));
}

// The first diagnosis that explains the case.
void explain(const Case& it, const DiagnoseOptions& options, const Wanted& wanted, Told& told) {
  for (const Diagnosis* diagnosis : diagnoses::kAll) {
    if (told.finding || !wanted(*diagnosis)) continue;
    std::optional<Explanation> explanation = diagnosis->examine(it);
    const bool accept = explanation && (it.carried > 0 ? made_there(it, *diagnosis, *explanation)
                                                       : accepted(it, *explanation));
    if (options.explain)
      told.trials.push_back(
          {it.site.pair, std::string(diagnosis->code), outcome_of(it, explanation, accept)});
    if (accept) told.finding = finding_of(*diagnosis, it, std::move(*explanation));
  }
}

// What is no number is told where it is made.
bool of_carried(const Diagnosis& d) { return &d != &diagnoses::nonfinite; }

bool of_values(const Diagnosis& d) {
  return &d != &diagnoses::operator_step && &d != &diagnoses::precision_noise;
}

// Where a's way of computing the step is known, b's own inputs tell what should have come out.
void explain_by_own_inputs(const Case& it, Expected expected, const DiagnoseOptions& options,
                           Told& told) {
  told.made_here = true;
  const auto replays = [&](const Diagnosis& d) {
    return d.replays || (&d == &diagnoses::norm_weight && it.rotary);
  };
  explain(it, options, replays, told);
  if (told.finding) return;
  Case own(it.run, it.site, std::move(expected.made), std::move(expected.b));
  measure(own);
  own.floor = expected.floor;
  own.own = true;
  explain(
      own, options, [&](const Diagnosis& d) { return !replays(d) && of_carried(d); }, told);
}

// Tokens that are off by more than what comes in accounts for: all of them, or a part.
std::optional<Finding> found_by_growth(const Case& it, const Outgrown& outgrown) {
  if (outgrown.tokens.empty()) return std::nullopt;
  if (!outgrown.all) return finding_of(diagnoses::region, it, outgrown_region(it, outgrown));
  std::optional<Explanation> step = diagnoses::operator_step.examine(it);
  return step ? std::optional(finding_of(diagnoses::operator_step, it, std::move(*step)))
              : std::nullopt;
}

// What can tell an error of its own from what came in: another tensor of a may be just that, and so
// may a region.
bool tells_from_carried(const Diagnosis& d) {
  return !d.replays && of_values(d) && of_carried(d) && &d != &diagnoses::other_tensor &&
         &d != &diagnoses::residual_missing && &d != &diagnoses::region;
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
          {site.pair, std::string(diagnosis->code), "rejected: explains nothing of a part of it"});
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

// Where the weights are given, b's own inputs tell, too.
void explain_by_weights(const Run& run, const DiagnoseOptions& options, const Site& site,
                        Told& told) {
  const std::optional<Case> it = run.weights.empty() ? std::optional<Case>() : make_case(run, site);
  if (!it) return;
  std::optional<Explanation> found = replay_weights(*it);
  if (options.explain)
    told.trials.push_back({site.pair, std::string(diagnoses::operator_step.code),
                           outcome_of(*it, found, found.has_value())});
  if (found) told.finding = finding_of(diagnoses::operator_step, *it, std::move(*found));
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

// A site whose inputs differ already: told.made_here says whether it made an error of its own.
Told explain_carried(const Run& run, const DiagnoseOptions& options, const Site& site) {
  Told told;
  std::optional<Expected> expected = expected_of(run, site);
  if (!expected) {
    explain_by_weights(run, options, site, told);
    const double limit = most_carried(run, site);
    if (!told.finding && site.error > limit)
      explain_standing_out(run, options, site, limit, told);
    else if (!told.finding && (worth_a_look(run, site) || is_norm(site.role)))
      explain_by_output(run, options, site, told);
  } else if (!expected->met()) {
    const std::optional<Case> it = make_case(run, site);
    if (it) explain_by_own_inputs(*it, std::move(*expected), options, told);
  }
  return told;
}

Told explain(const Run& run, const DiagnoseOptions& options, const Task& task) {
  if (task.carries) return explain_carried(run, options, *task.site);
  Told told;
  if (!task.wanted) return told;
  const bool replays = std::ranges::any_of(
      diagnoses::kAll, [&](const Diagnosis* d) { return d->replays && task.wanted(*d); });
  const std::optional<Case> it = replays ? make_case(run, *task.site) : values_of(run, *task.site);
  if (it) explain(*it, options, task.wanted, told);
  return told;
}

// All at once, since they have nothing to do with each other; told in their order. Says which of
// them were explained.
std::vector<bool> explain_all(const Run& run, const DiagnoseOptions& options,
                              const std::vector<Task>& tasks, Insight& insight) {
  std::vector<Told> told(tasks.size());
  for_each_index(tasks.size(), [&](std::size_t i) { told[i] = explain(run, options, tasks[i]); });
  std::vector<bool> explained;
  for (Told& each : told) {
    explained.push_back(each.made_here || each.finding.has_value());
    if (each.finding) insight.findings.push_back(std::move(*each.finding));
    for (Trial& trial : each.trials) insight.trials.push_back(std::move(trial));
  }
  return explained;
}

std::string inputs_text(const Site& site) {
  if (site.inputs.empty()) return "what went into it is not in the dumps";
  return fmt::format("its inputs agree to {}", human_number(site.error_in));
}

Divergence divergence_at(const Site& site) {
  return {site.pair, site.created, fmt::format("{}; {}", inputs_text(site), site.reason)};
}

// Behind another one.
Divergence next_divergence(const Site& site) {
  if (site.created || site.inputs.empty()) return divergence_at(site);
  return {site.pair, true,
          fmt::format("its inputs are off by {} already, which does not account for this",
                      human_number(site.error_in))};
}

// What reads a step and undoes its layout where that is only a convention: attention that of its
// inputs, an activation that of gate and up. A layout that goes on through it is none.
const Site* reader_of(const Run& run, const Site& site) {
  if (site.role >= Role::query && site.role <= Role::value_final)
    return find_role(run, site, Role::attention);
  if (site.role != Role::gate && site.role != Role::up) return nullptr;
  const Site* activation = find_role(run, site, Role::activation);
  return activation ? activation : find_role(run, site, Role::mlp_output);
}

// Whether what reads a step agrees as well as what came before it: an error that is merely small
// enough to be noise would not do.
bool gone_behind(const Run& run, const Site& site) {
  const Site* before =
      find_role(run, site, site.role >= Role::gate ? Role::mlp_norm : Role::attention_norm);
  const Site* reader = reader_of(run, site);
  if (!reader || reader->bug()) return false;
  if (before && site.error < kGrowthOfLayout * before->error) return false;
  const double level = (before ? before->error : 0) + kRoundoffsBehind * reader->roundoff;
  return reader->error <= kGrowthBehind * level;
}

// A layout that differs at a step and is gone behind it is a convention.
void forgive_conventions(Run& run, const DiagnoseOptions& options, Insight& insight) {
  std::vector<Site*> sites;
  std::vector<Task> tasks;
  for (Site& site : run.sites) {
    if (!site.bug() || !gone_behind(run, site) || tasks.size() == kConventionsMax) continue;
    sites.push_back(&site);
    tasks.push_back({&site, [](const Diagnosis& d) { return d.layout; }});
  }
  const std::vector<bool> explained = explain_all(run, options, tasks, insight);
  for (std::size_t i = 0; i < sites.size(); ++i) {
    if (!explained[i]) continue;
    sites[i]->verdict = Verdict::precision;
    sites[i]->created = false;
  }
  for (Finding& finding : insight.findings) {
    finding.convention = true;
    finding.explanation += "; a layout convention: what reads it agrees all the same";
  }
}

// What the ranks of b hold adds up to a, so that it was compared as a sum. Where the next step then
// goes wrong, nobody added it up: the mistake is there, and what follows carries it.
void blame_sums(Run& run) {
  for (Site& site : run.sites) {
    if (!site.bug() || !site.created) continue;
    for (const std::size_t input : site.inputs) {
      Site& source = run.sites[input];
      const auto summed = [](const Step& step) { return step.side == 'b' && step.op == ops::kSum; };
      if (!reduces_over_ranks(source.role) || std::ranges::none_of(source.views.steps, summed))
        continue;
      source.verdict = Verdict::bug;
      source.created = !source.inputs.empty();
      source.reason = "its ranks add up to a's, and the next step disagrees";
      site.created = false;
    }
  }
}

// Steps that b's own inputs tell of.
bool computed_again(Role role) {
  return is_norm(role) || (role >= Role::query_final && role <= Role::attention) ||
         role == Role::activation || role == Role::block_output;
}

bool computed_by_weights(const Run& run, const Site& site) {
  return !run.weights.empty() && (projection_of(run, site) || site.role == Role::mlp_output);
}

// Whether one more may be taken; says so at the site where not.
bool one_more(std::size_t& taken, std::size_t most, Site& site) {
  if (taken++ < most) return true;
  site.note = fmt::format("not looked into for its cause: {} steps before it were", most);
  return false;
}

void explain_created(Run& run, const DiagnoseOptions& options, Insight& insight) {
  std::vector<Task> tasks;
  std::size_t explained = 0, looks = 0;
  for (Site& site : run.sites) {
    if (!site.bug()) continue;
    const bool made_here = site.created || site.inputs.empty() || tasks.empty();
    // Where b is no number, the step that made it one has been told.
    const bool lost = site.comparison.diff.nonfinite_mismatch > 0;
    if (!made_here && lost) continue;
    Wanted wanted;
    if (made_here && one_more(explained, kExplainedMax, site))
      wanted = [](const Diagnosis&) { return true; };
    const bool looked_at = made_here || computed_again(site.role) ||
                           computed_by_weights(run, site) ||
                           (worth_a_look(run, site) && one_more(looks, kLooksMax, site));
    if (looked_at) tasks.push_back({&site, std::move(wanted), !made_here});
  }
  const std::vector<bool> found = explain_all(run, options, tasks, insight);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].carries && !found[i]) continue;
    if (!insight.first)
      insight.first = divergence_at(*tasks[i].site);
    else
      insight.next.push_back(next_divergence(*tasks[i].site));
  }
}

// Without layers there is no order of computing: each pair that differs is explained by itself.
void explain_pairs(const Run& run, const DiagnoseOptions& options, Insight& insight) {
  std::vector<Task> tasks;
  for (const Site& site : run.sites) {
    const bool differs = site.comparison.status == Status::different;
    if (!insight.first && (differs || site.comparison.status == Status::incomparable))
      insight.first =
          Divergence{site.pair, false, "the first pair, in display order, that is not close"};
    if (!differs || tasks.size() == kExplainedMax) continue;
    tasks.push_back({&site, [](const Diagnosis& d) { return !d.replays && of_values(d); }});
  }
  explain_all(run, options, tasks, insight);
}

// Says once for the run that what exceeds the tolerance is noise.
void explain_noise(const Run& run, const DiagnoseOptions& options, Insight& insight) {
  const Site* worst = nullptr;
  for (const Site& site : run.sites) {
    const bool told =
        std::ranges::find(insight.findings, site.pair, &Finding::pair) != insight.findings.end();
    const bool exceeds =
        !told && site.verdict == Verdict::precision && site.comparison.status == Status::different;
    if (exceeds && (!worst || site.error > worst->error)) worst = &site;
  }
  if (!worst) return;
  explain_all(run, options,
              {{worst,
                [](const Diagnosis& d) {
                  return &d == &diagnoses::cast || &d == &diagnoses::precision_noise;
                }}},
              insight);
}

}  // namespace

Insight diagnose(std::vector<Site> sites, const DiagnoseOptions& options) {
  Insight insight;
  Run run = make_run(std::move(sites), options.order);
  run.facts = options.facts;
  run.weights = options.weights;
  judge(run);
  insight.judged = run.activations;
  if (!run.activations) {
    explain_pairs(run, options, insight);
    return insight;
  }
  blame_sums(run);
  forgive_conventions(run, options, insight);
  explain_created(run, options, insight);
  explain_noise(run, options, insight);
  for (const Site& site : run.sites)
    insight.outcomes.push_back({site.pair, site.verdict, site.note});
  return insight;
}

}  // namespace tensordiff
