#include "diagnose/diagnose.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/parallel.h"
#include "base/text.h"
#include "diagnose/attention.h"
#include "diagnose/diagnosis.h"
#include "diagnose/evidence_slice.h"
#include "diagnose/fit.h"
#include "diagnose/heads.h"
#include "diagnose/noise.h"
#include "diagnose/rotation.h"

namespace tensordiff {
namespace {

// Explaining is for reading; after so many it is enough, and it must not outlast the comparison.
constexpr std::size_t kExplainedMax = 24;
constexpr std::size_t kConventionsMax = 1024;
constexpr std::size_t kCarriedMax = 48;  // Sites with bad inputs that are looked into.
// A transform counts only if it takes away most of the error.
constexpr double kImprovement = 0.3;
// An error on top of a carried one must stand out of it so much to be told from it.
constexpr double kStandsOut = 3;
// A convention is undone by what reads it: the error there is that before, grown as noise grows.
constexpr double kGrowthBehind = 4;
constexpr double kRoundoffsBehind = 4;

// Where to read a tensor that is too large to hold: its start, or the neighbourhood of the largest
// difference where that lies beyond it.
uint64_t window_of(const Site& site, const Extent& extent) {
  const TokenView tokens = by_tokens(site.views.a, extent);
  const std::vector<uint64_t>& at = site.comparison.diff.max_abs_at;
  const uint64_t kept = kValuesMax / std::max<uint64_t>(1, tokens.batch * tokens.features);
  const auto axis = std::ranges::find(site.views.a.shape, tokens.tokens);
  const auto index = static_cast<std::size_t>(axis - site.views.a.shape.begin());
  if (tokens.tokens <= kept || index >= at.size() || at[index] < kept) return 0;
  return at[index] - std::min(at[index], kept / 2);
}

std::optional<Case> make_case(const Run& run, const Site& site) {
  if (!site.compared()) return std::nullopt;
  const uint64_t first = window_of(site, run.extent);
  Result<Matrix> a = read_matrix(site.views.a, run.extent, first);
  Result<Matrix> b = read_matrix(site.views.b, run.extent, first);
  if (!a.ok() || !b.ok()) return std::nullopt;
  Case it(run, site, std::move(a).value(), std::move(b).value());
  it.norm_a = norm(it.a.values);
  it.before = it.norm_a > 0 ? distance(it.a.values, it.b.values) / it.norm_a : 1;
  it.floor =
      site.created || site.inputs.empty() ? site.budget : std::max(site.budget, 2 * site.error_in);
  it.rotary = learn_step(it);
  it.attention = wrong_attention(it);
  return it;
}

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
  Wanted wanted;  // Empty: by none.
};

struct Told {
  std::optional<Finding> finding;
  std::vector<Trial> trials;
};

std::string outcome_of(const std::optional<Explanation>& explanation, bool accept) {
  if (!explanation) return "does not apply";
  return fmt::format("{}: {}; leaves {}", accept ? "accepted" : "rejected", explanation->text,
                     human_number(explanation->after));
}

// The first diagnosis that explains the site.
Told explain(const Run& run, const DiagnoseOptions& options, const Task& task) {
  Told told;
  const std::optional<Case> it = task.wanted ? make_case(run, *task.site) : std::optional<Case>();
  if (!it) return told;
  for (const Diagnosis* diagnosis : diagnoses::kAll) {
    if (!task.wanted(*diagnosis)) continue;
    std::optional<Explanation> explanation = diagnosis->examine(*it);
    const bool accept = explanation && accepted(*it, *explanation);
    if (options.explain)
      told.trials.push_back(
          {task.site->pair, std::string(diagnosis->code), outcome_of(explanation, accept)});
    if (!accept) continue;
    told.finding = finding_of(*diagnosis, *it, std::move(*explanation));
    break;
  }
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
    explained.push_back(each.finding.has_value());
    if (each.finding) insight.findings.push_back(std::move(*each.finding));
    for (Trial& trial : each.trials) insight.trials.push_back(std::move(trial));
  }
  return explained;
}

// Steps that are computed again from what b itself put in, right or wrong.
bool can_be_replayed(Role role) {
  return role == Role::attention || role == Role::query_final || role == Role::key_final;
}

std::string inputs_text(const Site& site) {
  if (site.inputs.empty()) return "what went into it is not in the dumps";
  return fmt::format("its inputs agree to {}", human_number(site.error_in));
}

Divergence divergence_at(const Site& site) {
  return {site.pair, site.created, fmt::format("{}; {}", inputs_text(site), site.reason)};
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

// How to look into a bug whose inputs are bad already: an error of its own shows on top of what
// came in, or in spite of it. Nothing where neither can be told.
Wanted for_carried(const Site& site) {
  const bool above = site.error > kStandsOut * site.error_in;
  if (!above && !can_be_replayed(site.role)) return {};
  return [above](const Diagnosis& d) {
    return d.replays || (above && &d != &diagnoses::operator_step);
  };
}

void explain_created(const Run& run, const DiagnoseOptions& options, Insight& insight) {
  std::vector<Task> tasks;
  std::vector<bool> own;  // Made at the site, whether it is explained or not.
  std::size_t explained = 0, carried = 0;
  for (const Site& site : run.sites) {
    if (!site.bug()) continue;
    const bool made_here = site.created || site.inputs.empty() || tasks.empty();
    Wanted wanted;
    if (made_here && explained++ < kExplainedMax) wanted = [](const Diagnosis&) { return true; };
    if (!made_here) wanted = for_carried(site);
    if (!made_here && (!wanted || carried++ >= kCarriedMax)) continue;
    tasks.push_back({&site, std::move(wanted)});
    own.push_back(made_here);
  }
  const std::vector<bool> found = explain_all(run, options, tasks, insight);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (!own[i] && !found[i]) continue;
    if (!insight.first)
      insight.first = divergence_at(*tasks[i].site);
    else
      insight.next.push_back(divergence_at(*tasks[i].site));
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
    tasks.push_back({&site, [](const Diagnosis& d) {
                       return !d.replays && &d != &diagnoses::operator_step &&
                              &d != &diagnoses::precision_noise;
                     }});
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

double left_by(const Case& it, const Matrix& model) {
  return it.norm_a > 0 ? distance(it.b.values, model.values) / it.norm_a : 1;
}

Explanation explained_by(const Case& it, Matrix model) {
  Explanation result;
  result.after = left_by(it, model);
  result.model = std::move(model);
  return result;
}

bool accepted(const Case& it, const Explanation& explanation) {
  if (explanation.settled) return true;
  const double before = explanation.before.value_or(it.before);
  const double norm_b = norm(it.b.values);
  const double relative = norm_b > 0 ? explanation.after * it.norm_a / norm_b : 1;
  return relative <= it.floor && explanation.after <= kImprovement * before;
}

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
