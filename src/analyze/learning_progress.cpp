// learning_progress: how far training moved the weights, and whether it made the model better.
//
//   magnitude = ‖B − A‖ / ‖A‖ over all weights, and for each layer
//   trend     = by the loss (or score) that both checkpoints store under one name
//   speed     = magnitude / steps between the two

#include <algorithm>
#include <cmath>

#include "analyze/analysis.h"
#include "analyze/edit.h"
#include "analyze/gates.h"

namespace tensordiff {
namespace {

constexpr double kFlat = 1e-3;  // A loss that moves by less than a thousandth stands still.

std::string_view trend_of(const Decline& measure) {
  if (std::abs(measure.relative) <= kFlat) return "stable";
  return measure.relative < 0 ? "improving" : "degrading";
}

void add_trend(const Study& study, Answer& answer) {
  const std::optional<Decline> measure = decline_of(study);
  if (!measure) {
    answer.unknown("trend", "a loss or score of the same name in both checkpoints");
    return;
  }
  answer.field("trend", trend_of(*measure)).field("measure", measure->measure);
  answer.field("measure_a", measure->a).field("measure_b", measure->b);
}

void add_speed(const Study& study, std::optional<double> magnitude, Answer& answer) {
  const std::optional<StepsBetween> steps = steps_between(study);
  if (!steps || !magnitude) {
    answer.unknown("speed", "step counters of the same name that differ, in both checkpoints");
    return;
  }
  answer.field("speed", *magnitude / std::abs(steps->b - steps->a));
  answer.field("steps", steps->b - steps->a).field("step_counter", steps->counter);
}

// Weights that did not move: whole layers by their numbers, others by name.
void add_frozen(std::span<const Row* const> weights, Answer& answer) {
  std::vector<int64_t> layers;
  for (const auto& [depth, pairs] : by_depth(weights))
    if (std::ranges::none_of(pairs, [](const Row* each) { return each->changed(); }))
      layers.push_back(depth);
  std::vector<std::string> names;
  for (const Row* pair : weights) {
    const bool listed = pair->depth() && std::ranges::find(layers, *pair->depth()) != layers.end();
    if (!pair->changed() && !listed) names.push_back(pair->a.name);
  }
  answer.field("frozen_layers", layers.empty() ? "none" : ranges_text(layers));
  answer.field("frozen_beside", names.empty() ? "none" : first_names(names));
}

void examine(const Study& study, Answer& answer) {
  const std::vector<const Row*>& weights = study.weights();
  const std::optional<double> magnitude = relative_change(weights);
  add_trend(study, answer);
  if (magnitude)
    answer.field("magnitude", *magnitude);
  else
    answer.unknown("magnitude", "weights that can be compared and are not zero");
  add_speed(study, magnitude, answer);
  add_frozen(weights, answer);
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
    .definition = "size of the update overall and by layer; trend and speed if stored",
    .examine = examine,
};

}  // namespace tensordiff
