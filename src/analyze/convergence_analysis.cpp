// convergence_analysis: do the updates die down, turn around or run away?
//
//   size      = ‖B − A‖ / ‖A‖, the last update (two checkpoints show one)
//   direction = cosine between the first moments (or momentum) that the optimizer kept in a and b:
//               the way each was going. Angles between updates themselves need three checkpoints.
//   spread    = standard deviation of the sizes of single tensors / their mean

#include "analyze/convergence.h"

#include <algorithm>
#include <cmath>

#include "analyze/analysis.h"
#include "analyze/gates.h"
#include "base/text.h"

namespace tensordiff {
namespace {

bool is_momentum(std::string_view name) {
  return name.ends_with("exp_avg") || name.ends_with("momentum_buffer");
}

// The angle between what the optimizer had in mind in a and in b, over all parameters together.
std::optional<double> direction(const Study& study) {
  double product = 0, squares_a = 0, squares_b = 0;
  for (const Row* pair : study.pairs()) {
    if (purpose_of(*pair) != Purpose::optimizer || !pair->compared() || !is_momentum(pair->a.name))
      continue;
    const double a = squares_of(pair->comparison.a), b = squares_of(pair->comparison.b);
    product += pair->comparison.diff.cosine.value_or(0) * std::sqrt(a * b);
    squares_a += a;
    squares_b += b;
  }
  if (squares_a <= 0 || squares_b <= 0) return std::nullopt;
  return product / std::sqrt(squares_a * squares_b);
}

std::optional<double> spread_of_sizes(std::span<const Row* const> weights) {
  double count = 0, sum = 0, squares = 0;
  for (const Row* pair : weights) {
    const std::optional<double> size = pair->comparison.diff.rel_l2;
    if (!size || !std::isfinite(*size)) continue;
    count += 1;
    sum += *size;
    squares += *size * *size;
  }
  if (count < 2 || sum == 0) return std::nullopt;
  const double mean = sum / count;
  return std::sqrt(std::max(0.0, squares / count - mean * mean)) / mean;
}

std::string_view advice(Course course) {
  if (course == Course::diverging) return "stop training: lower the learning rate or restore A";
  if (course == Course::worsening)
    return "the stored metric became worse: restore A, or lower the learning rate";
  if (course == Course::unknown)
    return "compare more checkpoints (tensordiff trend), or store the loss with each";
  if (course == Course::improving) return "the stored metric improves: continue training";
  if (course == Course::converged) return "further steps at this rate change almost nothing";
  if (course == Course::oscillating) return "steps undo each other: lower the learning rate";
  if (course == Course::stable)
    return "small steady updates: continue, or compare later checkpoints";
  return "weights are still moving: continue training";
}

void examine(const Study& study, Answer& answer) {
  const std::vector<const Row*>& weights = study.weights();
  const std::optional<double> size = relative_change(weights);
  if (!size) {
    answer.unknown("status", "weights that can be compared and are not zero");
    return;
  }
  uint64_t broken = 0;
  double squares_a = 0, squares_b = 0;
  for (const Row* pair : weights) {
    const Comparison& it = pair->comparison;
    broken += it.b.nan + it.b.inf > it.a.nan + it.a.inf;
    squares_a += squares_of(it.a);
    squares_b += squares_of(it.b);
  }
  const std::optional<double> angle = direction(study);
  const double cosines[] = {angle.value_or(0)};
  Updates updates;
  updates.sizes = {&*size, 1};
  if (angle) updates.cosines = cosines;
  updates.broken = broken > 0;
  updates.growth = std::sqrt(squares_b / squares_a);
  const std::optional<Decline> measure = decline_of(study);
  const double measures[] = {measure ? measure->a : 0, measure ? measure->b : 0};
  if (measure) updates.measures = measures;
  updates.smaller_is_better = !measure || measure->smaller_is_better;
  const std::optional<StepsBetween> steps = steps_between(study);
  // An epoch is a number of steps that is not known.
  if (steps && lower(last_word(steps->counter)) != "epoch")
    updates.steps = std::abs(steps->b - steps->a);
  const Convergence found = judge_convergence(updates);
  const Course course = found.course;
  if (course == Course::unknown)
    answer.unknown("status", measure ? "more steps between the checkpoints, or a third (trend)"
                                     : "a third checkpoint (trend), or a loss stored in both");
  else
    answer.field("status", name_of(course));
  answer.field("reason", found.reason).field("size", *size);
  if (measure)
    answer.field("measure", measure->measure)
        .field("measure_a", measure->a)
        .field("measure_b", measure->b);
  if (steps) answer.field("step_a", steps->a).field("step_b", steps->b);
  answer.field("stability", spread_of_sizes(weights)).field("growth", updates.growth);
  if (angle)
    answer.field("direction", *angle);
  else
    answer.unknown("direction", "momentum of the optimizer in both, or a third checkpoint (trend)");
  answer.field("newly_not_finite", broken).field("action", advice(course));
}

}  // namespace

constinit const Analysis analyses::convergence_analysis = {
    .name = "convergence_analysis",
    .flag = "--convergence-analysis",
    .question = "Do the updates converge, oscillate or diverge?",
    .definition = "size of the update, growth of the weights, direction of the momentum",
    .examine = examine,
};

}  // namespace tensordiff
