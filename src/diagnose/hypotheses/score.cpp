#include "diagnose/hypotheses/score.h"

#include <algorithm>
#include <cmath>

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

Verdict judge(const operators::Context& context, const operators::Operator& step) {
  Verdict verdict;
  verdict.on_a = context.misfit(step, false);
  verdict.on_b = context.misfit(step, true);
  const double limit = std::max(kLimit, kOfOwn * verdict.on_a.s);
  verdict.own = verdict.on_b.known && verdict.on_b.s > limit;
  if (!verdict.own) return verdict;
  const double before = likelihood(verdict.on_b, limit);
  for (operators::Change& change : step.changes(context)) {
    Scored scored;
    scored.left = context.misfit(*change.made, true);
    if (!scored.left.known) continue;
    scored.score = likelihood(scored.left, limit) - before -
                   0.5 * change.dof * std::log(std::max(2.0, scored.left.count)) -
                   change.bits * std::log(2.0);
    scored.complete = scored.left.s <= limit && scored.left.rest <= kMostLeft * verdict.on_b.rest &&
                      scored.score > 0;
    scored.change = std::move(change);
    verdict.tried.push_back(std::move(scored));
  }
  std::ranges::stable_sort(verdict.tried, [](const Scored& x, const Scored& y) {
    return x.complete != y.complete ? x.complete : x.score > y.score;
  });
  return verdict;
}

}  // namespace tensordiff::hypotheses
