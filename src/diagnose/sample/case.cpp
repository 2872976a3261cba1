// One pair with its values, and when a model of it is good enough.

#include <algorithm>
#include <cmath>

#include "diagnose/hypotheses/diagnosis.h"
#include "diagnose/limits.h"
#include "diagnose/replay/attention.h"
#include "diagnose/replay/rotation.h"
#include "diagnose/sample/fit.h"
#include "diagnose/verdict/carried.h"

namespace tensordiff {
namespace {

// Of what is left where the inputs differ, no more than came in; and it must take away much.
constexpr double kCarriedGrowth = 1.5;
constexpr double kCarriedMost = 0.8;   // What leaves more tells nothing.
constexpr double kMovedRoundoffs = 4;  // What rounding of both sides does to an extreme.

std::optional<Case> read_case(const Run& run, const Site& site, uint64_t first) {
  Result<Matrix> a = read_matrix(site.views.a, run.extent, first);
  Result<Matrix> b = read_matrix(site.views.b, run.extent, first);
  if (!a.ok() || !b.ok()) return std::nullopt;
  Case it(run, site, std::move(a).value(), std::move(b).value());
  measure(it);
  return it;
}

// About as much as came in, of what the model makes.
double most_near_carried(const Case& it, const Explanation& explanation) {
  const double size = norm(explanation.model ? explanation.model->values : it.b.values);
  const double most = std::min(kCarriedGrowth * it.carried, kCarriedMost);
  return it.norm_a > 0 ? most * size / it.norm_a : 0;
}

}  // namespace

void measure(Case& it) {
  it.norm_a = norm(it.a.values);
  it.before = it.norm_a > 0 ? distance(it.a.values, it.b.values) / it.norm_a : 1;
}

std::optional<Matrix> read_side(const Run& run, const Site* site, View AlignedPair::*side,
                                const TokenRange& at) {
  if (!site) return std::nullopt;
  Result<Matrix> matrix = read_matrix(site->views.*side, run.extent, at);
  if (!matrix.ok()) return std::nullopt;
  return std::move(matrix).value();
}

uint64_t tokens_held(const Run& run, const Site& site, uint64_t values) {
  const TokenView tokens = by_tokens(site.views.a, run.extent);
  return std::max<uint64_t>(1, values / std::max<uint64_t>(1, tokens.batch * tokens.features));
}

uint64_t worst_token(const Run& run, const Site& site) {
  const TokenView tokens = by_tokens(site.views.a, run.extent);
  const std::vector<uint64_t>& at = site.comparison.diff.max_abs_at;
  if (at.size() != tokens.view.shape.size()) return 0;
  if (tokens.axis) return at[*tokens.axis];
  uint64_t row = 0;
  for (std::size_t axis = 0; axis + 1 < at.size(); ++axis)
    row = row * tokens.view.shape[axis] + at[axis];
  return row;
}

uint64_t window_of(const Run& run, const Site& site, uint64_t tokens) {
  const uint64_t worst = worst_token(run, site);
  return worst < tokens ? 0 : worst - tokens / 2;
}

bool shown_at_start(const Run& run, const Site& site) {
  const std::optional<Case> start = read_case(run, site, 0);
  return start && start->before >= limits::kShown * site.error;
}

std::optional<Case> values_of(const Run& run, const Site& site) {
  if (!site.compared()) return std::nullopt;
  std::optional<Case> start = read_case(run, site, 0);
  const uint64_t first = window_of(run, site, tokens_held(run, site, kValuesMax));
  const bool shown = !start || first == 0 || start->before >= limits::kShown * site.error;
  std::optional<Case> there = shown ? std::nullopt : read_case(run, site, first);
  std::optional<Case>& read = there ? there : start;
  if (!read) return std::nullopt;
  Case& it = *read;
  // It differs otherwise: in ranks that should hold the same, or elsewhere than in what was read.
  if (it.before == 0 && site.comparison.diff.nonfinite_mismatch == 0) return std::nullopt;
  it.floor =
      site.created || site.inputs.empty() ? site.budget : std::max(site.budget, 2 * site.error_in);
  return std::move(read);
}

std::optional<Case> make_case(const Run& run, const Site& site) {
  std::optional<Case> it = values_of(run, site);
  if (!it) return std::nullopt;
  it->rotary = learn_step(*it);
  it->attention = wrong_attention(*it);
  return it;
}

double left_by(const Case& it, const Matrix& model) {
  const bool whole = model.values.size() == it.b.values.size();
  return whole && it.norm_a > 0 ? distance(it.b.values, model.values) / it.norm_a : 1;
}

Explanation explained_by(const Case& it, Matrix model) {
  Explanation result;
  result.after = left_by(it, model);
  result.model = std::move(model);
  return result;
}

bool near_carried(const Case& it, const Explanation& explanation) {
  return it.norm_a > 0 && explanation.after <= most_near_carried(it, explanation);
}

double most_left(const Case& it, const Explanation& explanation) {
  const double before = explanation.before.value_or(it.before);
  if (it.carried > 0)
    return std::min(most_near_carried(it, explanation), limits::kImprovement * before);
  return it.norm_a > 0
             ? std::min(it.floor * norm(it.b.values) / it.norm_a, limits::kImprovement * before)
             : 0;
}

bool accepted(const Case& it, const Explanation& explanation) {
  return explanation.settled ? falls(it, explanation)
                             : explanation.after <= most_left(it, explanation);
}

bool may_be_moved(const Site& site) {
  // Of pieces that ranks hold copies of, only one copy was compared.
  if (!site.views.copies.empty()) return true;
  const Stats &a = site.comparison.a, &b = site.comparison.b;
  const double tolerance = std::max(limits::kSumsRounded, kMovedRoundoffs * site.roundoff);
  const double most = std::max(std::abs(a.min.value_or(0)), std::abs(a.max.value_or(0)));
  const auto same = [&](const std::optional<double>& x, const std::optional<double>& y,
                        double size) {
    return std::abs(x.value_or(0) - y.value_or(0)) <= tolerance * size;
  };
  return a.nan == b.nan && a.inf == b.inf && same(a.min, b.min, most) && same(a.max, b.max, most) &&
         same(a.norm, b.norm, a.norm.value_or(0));
}

bool falls(const Case& it, const Explanation& explanation) {
  const double before = explanation.before.value_or(it.before);
  return !explanation.model || (before > 0 && explanation.after <= kCarriedMost * before);
}

}  // namespace tensordiff
