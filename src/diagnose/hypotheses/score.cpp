#include "diagnose/hypotheses/score.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "diagnose/hypotheses/output.h"

namespace tensordiff::hypotheses {
namespace {

// The coding limit, in units of the noise: the largest that clean steps leave (design, section 10).
constexpr double kLimit = 3;
// What A's own operator leaves of A, once more for B's other rounding.
constexpr double kOfOwn = 1.5;
// A change that leaves a third of the difference is no cause, however loud the noise.
constexpr double kMostLeft = 0.3;

// The log likelihood of an output under an operator; below the limit nothing is earned.
double likelihood(const operators::Misfit& left, double limit) {
  return -left.count * (std::log(std::max(left.s, limit)) + left.log_sigma);
}

}  // namespace

namespace {

// What may be left of B, in units of the noise. Of a step that nothing is known of, A's own output
// is the prediction, which is as far from B's as rounding leaves it.
double limit_of(const operators::Context& context, const operators::Operator& step,
                const operators::Misfit& on_a) {
  const double limit = std::max(kLimit, kOfOwn * on_a.s);
  if (step.standing() != operators::Standing::unknown) return limit;
  return std::max(limit, context.site().budget / context.unit(true));
}

Scored scored(const operators::Context& context, operators::Change change, const Verdict& verdict,
              double limit) {
  Scored result;
  const bool coarser = change.unit > 0;
  if (coarser) limit = kLimit;
  result.left = context.misfit_of_b(*change.made, change.unit);
  result.score = likelihood(result.left, limit) - verdict.before -
                 0.5 * change.dof * std::log(std::max(2.0, result.left.count)) -
                 change.bits * std::log(2.0);
  // Where B rounds more coarsely, it is the noise that changes, and not what is left.
  const bool less = coarser || result.left.rest <= kMostLeft * verdict.on_b.rest;
  result.complete = result.left.known && result.left.s <= limit && less && result.score > 0;
  result.change = std::move(change);
  return result;
}

}  // namespace

Verdict judge(const operators::Context& context, const operators::OperatorPtr& step) {
  Verdict verdict;
  verdict.on_a = context.misfit(*step, false);
  verdict.on_b = context.misfit(*step, true);
  // What B does not have, it did not read: its output is another one where its inputs agree.
  const bool unread = !verdict.on_b.known && context.inputs_agree();
  if (unread)
    verdict.on_b = context.misfit(operators::AsInA(context.target(step->extents().layout)), true);
  const double limit = limit_of(context, *step, verdict.on_a);
  verdict.own = verdict.on_b.known && (unread || verdict.on_b.s > limit);
  if (!verdict.own) return verdict;
  verdict.before = likelihood(verdict.on_b, limit);
  std::vector<operators::Change> changes = step->changes(context);
  const double tolerance = std::max(context.site().budget, limit * context.unit(true));
  std::ranges::move(output_changes(context, step, tolerance), std::back_inserter(changes));
  for (operators::Change& change : changes)
    verdict.tried.push_back(scored(context, std::move(change), verdict, limit));
  std::erase_if(verdict.tried, [](const Scored& each) { return !each.left.known; });
  std::ranges::stable_sort(verdict.tried, [](const Scored& x, const Scored& y) {
    return x.complete != y.complete ? x.complete : x.score > y.score;
  });
  return verdict;
}

}  // namespace tensordiff::hypotheses
