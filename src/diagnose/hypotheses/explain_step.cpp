#include "diagnose/hypotheses/explain_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "diagnose/hypotheses/score.h"
#include "diagnose/operators/proposal.h"
#include "diagnose/sample/evidence_slice.h"
#include "diagnose/verdict/carried.h"

namespace tensordiff {
namespace {

using hypotheses::Scored;

constexpr std::size_t kTrialsMax = 12;  // Of those that were tried, for --explain.

struct Place {
  uint64_t row, column;
};

// Where an element of the compared shape stands in what an operator gives.
Place place_in(const operators::Extents& extents, const Case& it,
               const std::vector<uint64_t>& index) {
  const View& view = it.site.views.b;
  if (extents.layout == operators::Layout::channels) {
    uint64_t row = index[0];
    for (std::size_t axis = 2; axis < index.size(); ++axis)
      row = row * view.shape[axis] + index[axis];
    return {row, index[1]};
  }
  const TokenView tokens =
      by_tokens(view, extents.layout == operators::Layout::plain ? Extent() : it.run.extent);
  uint64_t flat = 0;
  for (std::size_t axis = 0; axis < index.size(); ++axis)
    flat = flat * tokens.view.shape[axis] + index[tokens.order[axis]];
  return {flat / extents.features, flat % extents.features};
}

// What the change makes of the values that are shown, which stand side by side in the last axis.
std::vector<double> made_there(const operators::Operator& made, const Case& it,
                               const EvidenceSlice& slice) {
  operators::Grid grid;
  std::vector<uint64_t> index = slice.at;
  if (index.empty() || it.site.views.a.shape != it.site.views.b.shape) return {};
  const auto add = [](std::vector<uint64_t>& to, uint64_t value) {
    if (to.empty() || to.back() != value) to.push_back(value);
  };
  for (std::size_t i = 0; i < slice.a.size(); ++i, ++index.back()) {
    const Place place = place_in(made.extents(), it, index);
    add(grid.rows, place.row);
    add(grid.columns, place.column);
  }
  const operators::Block block = made.predict({&AlignedPair::b}, grid);
  return block.values.size() == slice.a.size() ? block.values : std::vector<double>();
}

Finding finding_of(const operators::Context& context, const operators::Operator& step,
                   const hypotheses::Verdict& verdict) {
  const Scored& best = verdict.tried[0];
  Finding finding;
  finding.code = best.change.code;
  finding.pair = context.site().index;
  finding.explanation = best.change.text;
  finding.parameters = best.change.parameters;
  if (!best.change.cause.empty()) finding.parameters.push_back({"cause", best.change.cause});
  finding.parameters.push_back({"step", std::string(step.kind())});
  finding.parameters.push_back({"standing", std::string(name_of(step.standing()))});
  finding.parameters.push_back({"family", std::string(name_of(best.change.family))});
  finding.residual_before = verdict.on_b.rest;
  finding.residual_after = best.left.rest;
  const std::optional<Case> it = values_of(context.run(), context.site());
  if (it) finding.evidence = evidence_of(*it, std::nullopt);
  if (finding.evidence)
    finding.evidence->model = made_there(*best.change.made, *it, *finding.evidence);
  return finding;
}

void tell_trials(const Site& site, const operators::Operator& step,
                 const hypotheses::Verdict& verdict, Told& told) {
  for (std::size_t i = 0; i < std::min(kTrialsMax, verdict.tried.size()); ++i)
    told.trials.push_back(
        {site.index, verdict.tried[i].change.code,
         fmt::format("{} as {} of {}: {}; leaves {} of {} ({} times the noise)",
                     verdict.tried[i].complete ? "accepted" : "rejected", step.kind(), step.text(),
                     verdict.tried[i].change.text, human_number(verdict.tried[i].left.rest),
                     human_number(verdict.on_b.rest), human_number(verdict.tried[i].left.s))});
  if (verdict.tried.empty())
    told.trials.push_back(
        {site.index, "operator",
         fmt::format("{} of {}: leaves {} of B, {} times the noise ({} of A)", step.kind(),
                     step.text(), human_number(verdict.on_b.rest), human_number(verdict.on_b.s),
                     human_number(verdict.on_a.s))});
}

void explain_as(const operators::Context& context, const DiagnoseOptions& options,
                const operators::OperatorPtr& step, Told& told) {
  const hypotheses::Verdict verdict = hypotheses::judge(context, step);
  if (options.explain) tell_trials(context.site(), *step, verdict, told);
  if (!verdict.tried.empty() && verdict.tried[0].complete)
    told.finding = finding_of(context, *step, verdict);
}

}  // namespace

void explain_step(const Run& run, const DiagnoseOptions& options, const LoneTensors& lone,
                  const Site& site, Told& told) {
  if (!site.compared()) return;
  const operators::Context context(run, site, lone);
  for (const operators::Proposal* proposal : operators::kinds::kAll)
    if (const operators::OperatorPtr step = proposal->propose(context))
      return explain_as(context, options, step, told);
}

Told explain_behind(const Run& run, const DiagnoseOptions& options, const LoneTensors& lone,
                    const Site& site) {
  Told told = explain_carried(run, options, site);
  if (!told.made_here || !site.compared()) return told;
  const operators::Context context(run, site, lone);
  for (const operators::Proposal* proposal : operators::kinds::kAll) {
    const operators::OperatorPtr step = proposal->propose(context);
    if (!step) continue;
    const hypotheses::Verdict verdict = hypotheses::judge(context, step);
    if (options.explain) tell_trials(site, *step, verdict, told);
    if (verdict.on_b.known && !verdict.own) {
      told.made_here = false;
      told.finding.reset();
    } else if (!verdict.tried.empty() && verdict.tried[0].complete) {
      told.finding = finding_of(context, *step, verdict);
    }
    break;
  }
  return told;
}

void explain_output(const Run& run, const DiagnoseOptions& options, const LoneTensors& lone,
                    const Site& site, Told& told) {
  if (!site.compared()) return;
  const operators::Context context(run, site, lone);
  if (!context.inputs_agree()) return;
  for (const operators::Layout layout : {operators::Layout::tokens, operators::Layout::channels}) {
    const operators::DumpedPtr& target = context.target(layout);
    if (target)
      return explain_as(context, options, std::make_shared<operators::AsInA>(target), told);
  }
}

}  // namespace tensordiff
