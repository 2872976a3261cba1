// learning_progress: how far training moved the weights, and whether it made the model better.
//
//   magnitude = ‖b − a‖ / ‖a‖ over all weights, and for each layer
//   trend     = by the loss (or score) that both checkpoints store under one name
//   speed     = magnitude / steps between the two

#include <cmath>

#include "analyze/analysis.h"

namespace tensordiff {
namespace {

constexpr double kFlat = 1e-3;  // A loss that moves by less than a thousandth stands still.

// The number of b that goes by the same name as in a.
struct Both {
  std::string name;
  double a = 0, b = 0;
};
std::optional<Both> on_both_sides(const Fact* in_b, const Facts& facts_a) {
  if (!in_b) return std::nullopt;
  const std::optional<double> in_a = facts_a.named(in_b->name);
  if (!in_a || !std::isfinite(*in_a)) return std::nullopt;
  return Both{in_b->name, *in_a, in_b->value};
}

std::string_view trend_of(const Both& measure, bool smaller_is_better) {
  const double size = std::max(std::abs(measure.a), std::abs(measure.b));
  const double gain = smaller_is_better ? measure.a - measure.b : measure.b - measure.a;
  if (std::abs(gain) <= kFlat * size) return "stable";
  return gain > 0 ? "improving" : "degrading";
}

void add_trend(const Study& study, Answer& answer) {
  const Progress progress = progress_of(study.facts_b());
  const std::optional<Both> loss = on_both_sides(progress.loss, study.facts_a());
  const std::optional<Both> score = on_both_sides(progress.score, study.facts_a());
  if (!loss && !score) {
    answer.unknown("trend", "a loss or score of the same name in both checkpoints");
    return;
  }
  const Both& measure = loss ? *loss : *score;
  answer.field("trend", trend_of(measure, loss.has_value())).field("measure", measure.name);
  answer.field("measure_a", measure.a).field("measure_b", measure.b);
}

void add_speed(const Study& study, std::optional<double> magnitude, Answer& answer) {
  const std::optional<Both> step =
      on_both_sides(progress_of(study.facts_b()).step, study.facts_a());
  if (!step || step->a == step->b || !magnitude) {
    answer.unknown("speed", "step counters of the same name that differ, in both checkpoints");
    return;
  }
  const double steps = step->b - step->a;
  answer.field("speed", *magnitude / std::abs(steps)).field("steps", steps);
  answer.field("step_counter", step->name);
}

void examine(const Study& study, Answer& answer) {
  const std::vector<const Subject*> weights = study.weights();
  const std::optional<double> magnitude = relative_change(weights);
  add_trend(study, answer);
  if (magnitude)
    answer.field("magnitude", *magnitude);
  else
    answer.unknown("magnitude", "weights that can be compared and are not zero");
  add_speed(study, magnitude, answer);
  Listing& layers = answer.list("layers", {"layer", "update", "tensors"});
  for (const auto& [depth, pairs] : by_depth(weights))
    layers.add({depth, relative_change(pairs), pairs.size()});
  add_change_by_depth(weights, answer);
}

}  // namespace

constinit const Analysis analyses::learning_progress = {
    .name = "learning_progress",
    .flag = "--learning-progress",
    .question = "How far did training move the weights, and did it help?",
    .definition = "size of the update overall and by layer; trend and speed where they are stored",
    .examine = examine,
};

}  // namespace tensordiff
