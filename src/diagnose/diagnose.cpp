#include "diagnose/diagnose.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "diagnose/diagnosis.h"
#include "diagnose/evidence_slice.h"
#include "diagnose/fit.h"
#include "diagnose/noise.h"

namespace tensordiff {
namespace {

// Explaining is for reading; after so many it is enough, and it must not outlast the comparison.
constexpr std::size_t kExplainedMax = 24;
constexpr std::size_t kCarriedMax = 48;  // Sites with bad inputs that are looked into.
// A transform counts only if it takes away most of the error.
constexpr double kImprovement = 0.3;
// An error on top of a carried one must stand out of it so much to be told from it.
constexpr double kStandsOut = 3;

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
  Case it{run, site, std::move(a).value(), std::move(b).value()};
  it.norm_a = norm(it.a.values);
  it.before = it.norm_a > 0 ? distance(it.a.values, it.b.values) / it.norm_a : 1;
  it.floor =
      site.created || site.inputs.empty() ? site.budget : std::max(site.budget, 2 * site.error_in);
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

class Explainer {
 public:
  Explainer(const Run& run, const DiagnoseOptions& options, Insight& insight)
      : run_(run), options_(options), insight_(insight) {}

  // The first diagnosis that explains the site, of those that `wanted` lets through.
  template <class Wanted>
  bool explain(const Site& site, const Wanted& wanted) {
    const std::optional<Case> it = make_case(run_, site);
    if (!it) return false;
    for (const Diagnosis* diagnosis : diagnoses::kAll) {
      if (!wanted(*diagnosis)) continue;
      std::optional<Explanation> explanation = diagnosis->examine(*it);
      const bool accept = explanation && accepted(*it, *explanation);
      note(site, *diagnosis, explanation, accept);
      if (!accept) continue;
      insight_.findings.push_back(finding_of(*diagnosis, *it, std::move(*explanation)));
      return true;
    }
    return false;
  }

 private:
  void note(const Site& site, const Diagnosis& diagnosis,
            const std::optional<Explanation>& explanation, bool accept) {
    if (!options_.explain) return;
    std::string outcome = "does not apply";
    if (explanation)
      outcome = fmt::format("{}: {}; leaves {}", accept ? "accepted" : "rejected",
                            explanation->text, human_number(explanation->after));
    insight_.trials.push_back({site.pair, std::string(diagnosis.code), std::move(outcome)});
  }

  const Run& run_;
  const DiagnoseOptions& options_;
  Insight& insight_;
};

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

// A layout that differs at the inputs of attention and is gone behind it is a convention.
void forgive_conventions(Run& run, const DiagnoseOptions& options, Insight& insight) {
  for (Site& site : run.sites) {
    if (!site.bug() || site.role < Role::query || site.role > Role::value_final) continue;
    const Site* attention = find_role(run, site, Role::attention);
    if (!attention || attention->bug()) continue;
    const std::size_t found = insight.findings.size();
    Explainer explainer(run, options, insight);
    if (!explainer.explain(site, [](const Diagnosis& d) { return d.layout; })) continue;
    insight.findings[found].convention = true;
    insight.findings[found].explanation +=
        "; a layout convention: the attention output agrees all the same";
    site.verdict = Verdict::precision;
    site.created = false;
  }
}

void explain_created(const Run& run, const DiagnoseOptions& options, Insight& insight) {
  Explainer explainer(run, options, insight);
  std::size_t explained = 0, carried = 0;
  for (const Site& site : run.sites) {
    if (!site.bug()) continue;
    const bool own = site.created || site.inputs.empty() || !insight.first;
    bool found = false;
    if (own && explained < kExplainedMax) {
      ++explained;
      found = explainer.explain(site, [](const Diagnosis&) { return true; }) || own;
    } else if (!own && carried < kCarriedMax) {
      // An error of its own shows on top of what came in, or in spite of it.
      const bool above = site.error > kStandsOut * site.error_in;
      if (!above && !can_be_replayed(site.role)) continue;
      ++carried;
      found = explainer.explain(site, [&](const Diagnosis& d) {
        return d.replays || (above && &d != &diagnoses::operator_step);
      });
    }
    if (!found) continue;
    if (!insight.first)
      insight.first = divergence_at(site);
    else
      insight.next.push_back(divergence_at(site));
  }
}

// Without layers there is no order of computing: each pair that differs is explained by itself.
void explain_pairs(const Run& run, const DiagnoseOptions& options, Insight& insight) {
  Explainer explainer(run, options, insight);
  std::size_t explained = 0;
  for (const Site& site : run.sites) {
    const bool differs = site.comparison.status == Status::different;
    if (!insight.first && (differs || site.comparison.status == Status::incomparable))
      insight.first =
          Divergence{site.pair, false, "the first pair, in display order, that is not close"};
    if (!differs || explained == kExplainedMax) continue;
    ++explained;
    explainer.explain(site, [](const Diagnosis& d) {
      return !d.replays && &d != &diagnoses::operator_step && &d != &diagnoses::precision_noise;
    });
  }
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
  Explainer explainer(run, options, insight);
  explainer.explain(*worst, [](const Diagnosis& d) {
    return &d == &diagnoses::cast || &d == &diagnoses::precision_noise;
  });
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
  judge(run);
  insight.judged = run.activations;
  if (!run.activations) {
    explain_pairs(run, options, insight);
    return insight;
  }
  forgive_conventions(run, options, insight);
  explain_created(run, options, insight);
  explain_noise(run, options, insight);
  for (const Site& site : run.sites) insight.outcomes.push_back({site.pair, site.verdict});
  return insight;
}

}  // namespace tensordiff
