#include "diagnose/diagnose.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "base/parallel.h"
#include "base/text.h"
#include "diagnose/graph/heads.h"
#include "diagnose/graph/lone.h"
#include "diagnose/hypotheses/confidence.h"
#include "diagnose/hypotheses/diagnosis.h"
#include "diagnose/hypotheses/explain_step.h"
#include "diagnose/hypotheses/subset.h"
#include "diagnose/noise/coarse_products.h"
#include "diagnose/noise/norms.h"
#include "diagnose/operators/routing.h"
#include "diagnose/replay/linear_replay.h"
#include "diagnose/sample/finite_tokens.h"
#include "diagnose/sample/first_look.h"
#include "diagnose/verdict/carried.h"
#include "diagnose/verdict/conventions.h"
#include "diagnose/verdict/explain.h"
#include "diagnose/verdict/judge.h"
#include "diagnose/verdict/size_apart.h"

namespace tensordiff {
namespace {

// Explaining is for reading; after so many it is enough, and it must not outlast the comparison.
constexpr std::size_t kExplainedMax = 24;
constexpr std::size_t kConventionsMax = 1024;
constexpr std::size_t kLooksMax = 96;  // Sites with bad inputs that a alone can tell something of.

// What diagnose() was called with, but for the sites.
struct Asked {
  const DiagnoseOptions& options;
  const LoneTensors& lone;
};

// A site to explain, and by which diagnoses.
struct Task {
  const Site* site;
  Wanted wanted;         // Empty: by none.
  bool carries = false;  // What goes into it differs, and it may do no more than carry that on.
};

// By the first diagnosis that accounts for it.
void explain_by_rules(const Run& run, const DiagnoseOptions& options, const Task& task,
                      Told& told) {
  // Whoever asks what was tried is told of all of it.
  const FirstLook look = options.explain ? FirstLook() : FirstLook(run, *task.site);
  std::vector<const Diagnosis*> left;
  for (const Diagnosis* d : diagnoses::kAll)
    if (task.wanted(*d) && !look.rules_out(*d)) left.push_back(d);
  if (left.empty()) return;
  const bool replays = std::ranges::any_of(left, &Diagnosis::replays);
  const std::optional<Case> it = replays ? make_case(run, *task.site) : values_of(run, *task.site);
  const auto is_left = [&](const Diagnosis& d) {
    return std::ranges::find(left, &d) != left.end();
  };
  if (it) explain(*it, options, is_left, told);
  if (told.finding && told.finding->code == diagnoses::operator_step.code)
    explain_blanks(run, *task.site, told);
}

// One product that rounds more coarsely than the others of the run.
void explain_rounding(const Run& run, const Site& site, Told& told) {
  const std::string_view format = rounds_alone_like(run, site);
  if (format.empty()) return;
  Finding finding;
  finding.code = diagnoses::cast.code;
  finding.pair = site.index;
  finding.explanation = fmt::format(
      "B's product rounds like {} in this step alone; the difference has no structure", format);
  finding.parameters = {{"cause", std::string("coarse_product")},
                        {"format", std::string(format)},
                        {"standing", std::string("unknown")},
                        {"family", std::string("quantiser")}};
  told.finding = std::move(finding);
}

Told explain(const Run& run, const Asked& asked, const Task& task) {
  if (task.carries) return explain_behind(run, asked.options, asked.lone, *task.site);
  Told told;
  if (!task.wanted) return told;
  if (task.wanted(diagnoses::operator_step))
    explain_step(run, asked.options, asked.lone, *task.site, told);
  if (told.finding) return told;
  explain_by_rules(run, asked.options, task, told);
  // What says where, and not what, is worth another look.
  const std::string_view code = told.finding ? std::string_view(told.finding->code) : "";
  const bool vague =
      code.empty() || code == diagnoses::operator_step.code || code == diagnoses::region.code;
  if (!vague || !task.wanted(diagnoses::operator_step)) return told;
  Told again;
  explain_output(run, asked.options, asked.lone, *task.site, again);
  explain_subset(asked.lone, *task.site, again);
  if (!again.finding && code != diagnoses::region.code) explain_rounding(run, *task.site, again);
  if (again.finding) told.finding = std::move(again.finding);
  std::ranges::move(again.trials, std::back_inserter(told.trials));
  return told;
}

// All at once, since they have nothing to do with each other; told in their order. Says which of
// them were explained.
std::vector<bool> explain_all(const Run& run, const Asked& asked, const std::vector<Task>& tasks,
                              Insight& insight) {
  std::vector<Told> told(tasks.size());
  for_each_index(tasks.size(), [&](std::size_t i) { told[i] = explain(run, asked, tasks[i]); });
  std::vector<bool> explained;
  for (Told& each : told) {
    explained.push_back(each.made_here || each.finding.has_value());
    if (each.finding) insight.findings.push_back(std::move(*each.finding));
    for (Trial& trial : each.trials) insight.trials.push_back(std::move(trial));
  }
  return explained;
}

std::string inputs_text(const Site& site) {
  if (site.inputs.empty()) return "its inputs are not in the dumps";
  return fmt::format("its inputs agree to {}", human_number(site.error_in));
}

Divergence divergence_at(const Site& site) {
  return {site.index, site.created, fmt::format("{}; {}", inputs_text(site), site.reason)};
}

// Behind another one.
Divergence next_divergence(const Site& site) {
  if (site.created || site.inputs.empty()) return divergence_at(site);
  return {site.index, true,
          fmt::format("its inputs differ by {}, which does not explain this",
                      human_number(site.error_in))};
}

// Explains sites by layouts alone. Those that `why` tells a reason of are conventions.
void forgive(const Run& run, const Asked& asked, const std::vector<Site*>& sites,
             const std::function<std::string_view(const Site&, const Finding&)>& why,
             Insight& insight) {
  std::vector<Task> tasks;
  for (const Site* site : sites)
    tasks.push_back({site, [](const Diagnosis& d) { return d.layout; }});
  Insight found;
  explain_all(run, asked, tasks, found);
  for (Site* site : sites) {
    const auto finding = std::ranges::find(found.findings, site->index, &Finding::pair);
    if (finding == found.findings.end()) continue;
    const std::string_view reason = why(*site, *finding);
    if (reason.empty()) continue;
    site->verdict = Verdict::precision;
    site->created = false;
    finding->convention = true;
    finding->explanation += fmt::format("; a layout convention: {}", reason);
    insight.findings.push_back(std::move(*finding));
  }
  std::ranges::move(found.trials, std::back_inserter(insight.trials));
}

// A layout that differs at a step and is gone behind it is a convention; and so it is in layers
// where what reads it is wrong.
void forgive_conventions(Run& run, const Asked& asked, Insight& insight) {
  std::vector<Site*> gone, others;
  for (Site& site : run.sites)
    if (site.bug() && gone_behind(run, site) && gone.size() < kConventionsMax)
      gone.push_back(&site);
  std::set<std::pair<Role, std::string>> known;
  forgive(
      run, asked, gone,
      [&](const Site& site, const Finding& finding) {
        // Of the first token whole heads that stand elsewhere show, but no pairs of RoPE in them.
        const bool by_first = site.role == Role::fused_qkv && reader_of(run, site)->bug();
        if (by_first && finding.code != "block_permutation") return "";
        known.emplace(site.role, finding.explanation);
        return "the steps that read it agree";
      },
      insight);
  for (Site& site : run.sites)
    if (site.bug() && others.size() < kConventionsMax &&
        std::ranges::any_of(known, [&](const auto& each) { return each.first == site.role; }))
      others.push_back(&site);
  forgive(
      run, asked, others,
      [&](const Site& site, const Finding& finding) {
        return known.contains({site.role, finding.explanation})
                   ? "the steps that read it agree in other layers"
                   : "";
      },
      insight);
}

// What softmax does not see is told, and no mistake.
void forgive_shifts(Run& run, const Asked& asked, Insight& insight) {
  for (Site& site : run.sites) {
    if (!site.bug() || site.role != Role::logits) continue;
    Insight found;
    const auto wanted = [](const Diagnosis& d) { return &d == &diagnoses::softmax_shift; };
    explain_all(run, asked, {{&site, wanted}}, found);
    if (found.findings.empty()) continue;
    site.verdict = Verdict::precision;
    site.created = false;
    Finding& finding = insight.findings.emplace_back(std::move(found.findings[0]));
    finding.convention = true;
    finding.explanation += "; the probabilities are the same after softmax";
  }
}

// What the ranks of b hold adds up to a, so that it was compared as a sum. Where the next step then
// goes wrong, nobody added it up: the mistake is there, and what follows carries it.
void blame_sums(Run& run) {
  for (Site& site : run.sites) {
    if (!site.bug() || !site.created) continue;
    for (std::size_t input : site.inputs) {
      // A module and the last that it calls hold the same: the first of them is told.
      while (run.sites[input].repeats) input = *run.sites[input].copy_of;
      Site& source = run.sites[input];
      const auto summed = [](const Step& step) { return step.side == 'b' && step.op == Op::sum; };
      if (!reduces_over_ranks(source.role) || std::ranges::none_of(source.views.steps, summed))
        continue;
      if (source.bug()) continue;  // Not even the sum is A's value.
      source.verdict = Verdict::bug;
      source.created = !source.inputs.empty();
      source.reason = "its ranks add up to A's value, and the next step disagrees";
      site.created = false;
    }
  }
}

// Steps that b's own inputs tell of.
bool computed_again(Role role) {
  return is_norm(role) || (role >= Role::query_final && role <= Role::attention_heads) ||
         role == Role::activation || role == Role::layer_output;
}

bool computed_by_weights(const Run& run, const Site& site) {
  return !run.weights.empty() && (projection_of(run, site) || site.role == Role::mlp_output);
}

// Whether one more may be taken; says so at the site where not.
bool one_more(std::size_t& taken, std::size_t most, Site& site) {
  if (taken++ < most) return true;
  site.note = fmt::format("cause not searched: {} earlier steps were", most);
  return false;
}

void explain_created(Run& run, const Asked& asked, Insight& insight) {
  std::vector<Task> tasks;
  std::size_t explained = 0, looks = 0;
  for (Site& site : run.sites) {
    if (!site.bug() || site.repeats) continue;
    const bool made_here = site.created || site.inputs.empty() || tasks.empty();
    // Where b is no number, the step that made it one has been told.
    const bool lost = site.is_lost() || std::ranges::any_of(site.inputs, [&](std::size_t input) {
                        return run.sites[input].is_lost();
                      });
    // Behind a mistake, an expert gets other tokens.
    if (!made_here && (lost || is_shared_by_experts(site))) continue;
    Wanted wanted;
    if (made_here && one_more(explained, kExplainedMax, site))
      wanted = [](const Diagnosis&) { return true; };
    const bool looked_at = made_here || computed_again(site.role) ||
                           computed_by_weights(run, site) || may_be_apart(run, site) ||
                           (worth_a_look(run, site) && one_more(looks, kLooksMax, site));
    if (looked_at) tasks.push_back({&site, std::move(wanted), !made_here});
  }
  const std::vector<bool> found = explain_all(run, asked, tasks, insight);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].carries && !found[i]) continue;
    if (!insight.first)
      insight.first = divergence_at(*tasks[i].site);
    else
      insight.next.push_back(next_divergence(*tasks[i].site));
  }
}

// What else is wrong where a step gave no numbers: told by the tokens before those.
void explain_finite_tokens(const Run& run, const Asked& asked, Insight& insight) {
  std::optional<FiniteTokens> part = tokens_before_nonfinite(run);
  if (!part) return;
  std::set<std::size_t> lost;  // No numbers there either: they came from later tokens.
  for (const Site& site : part->sites)
    if (site.is_lost()) lost.insert(site.index);
  Insight found = diagnose(std::move(part->sites), asked.options);
  if (found.first) found.next.insert(found.next.begin(), std::move(*found.first));
  const auto told = [&](std::size_t pair) {
    return (insight.first && insight.first->pair == pair) ||
           std::ranges::find(insight.next, pair, &Divergence::pair) != insight.next.end();
  };
  for (Divergence& each : found.next) {
    if (told(each.pair) || lost.contains(each.pair)) continue;
    each.explanation =
        fmt::format("of the {} tokens before the first NaN: {}", part->tokens, each.explanation);
    insight.next.push_back(std::move(each));
    const auto finding =
        std::ranges::find(found.findings, insight.next.back().pair, &Finding::pair);
    if (finding != found.findings.end()) insight.findings.push_back(std::move(*finding));
  }
  std::map<std::size_t, std::size_t> places;
  for (std::size_t i = 0; i < run.sites.size(); ++i) places[run.sites[i].index] = i;
  std::ranges::stable_sort(insight.next, {},
                           [&](const Divergence& each) { return places[each.pair]; });
}

// Without layers there is no order of computing: each pair that differs is explained by itself.
void explain_pairs(const Run& run, const Asked& asked, Insight& insight) {
  std::vector<Task> tasks;
  for (const Site& site : run.sites) {
    const bool differs = site.comparison.status == Status::different;
    if (!insight.first && (differs || site.comparison.status == Status::incomparable))
      insight.first =
          Divergence{site.index, false, "the first pair, in display order, that is not close"};
    if (!differs || tasks.size() == kExplainedMax) continue;
    tasks.push_back({&site, [](const Diagnosis& d) { return !d.replays && of_values(d); }});
  }
  explain_all(run, asked, tasks, insight);
}

// Says once for the run that what exceeds the tolerance is noise.
void explain_noise(const Run& run, const Asked& asked, Insight& insight) {
  const Site* worst = nullptr;
  for (const Site& site : run.sites) {
    const bool told = site.aside || std::ranges::find(insight.findings, site.index,
                                                      &Finding::pair) != insight.findings.end();
    const bool exceeds =
        !told && site.verdict == Verdict::precision && site.comparison.status == Status::different;
    if (exceeds && (!worst || site.error > worst->error)) worst = &site;
  }
  if (!worst) return;
  explain_all(run, asked,
              {{worst,
                [](const Diagnosis& d) {
                  return &d == &diagnoses::cast || &d == &diagnoses::precision_noise;
                }}},
              insight);
}

}  // namespace

Insight diagnose(std::vector<Site> sites, const DiagnoseOptions& options) {
  return diagnose(std::move(sites), options, {});
}

Insight diagnose(std::vector<Site> sites, const DiagnoseOptions& options, const LoneTensors& lone) {
  const Asked asked{options, lone};
  Insight insight;
  Run run = make_run(std::move(sites), options.order);
  run.facts = options.facts;
  run.weights = options.weights;
  judge(run);
  insight.judged = run.activations;
  if (!run.activations) {
    explain_pairs(run, asked, insight);
    hypotheses::rate(insight.findings, false);
    return insight;
  }
  if (!run.weights.empty()) insight.weight_use = weight_use(run);
  blame_sums(run);
  forgive_conventions(run, asked, insight);
  forgive_shifts(run, asked, insight);
  explain_created(run, asked, insight);
  explain_finite_tokens(run, asked, insight);
  explain_noise(run, asked, insight);
  hypotheses::rate(insight.findings, true);
  for (const Site& site : run.sites)
    insight.outcomes.push_back({site.index, site.verdict, site.note});
  return insight;
}

}  // namespace tensordiff
