// learning_rate_analysis: which learning rates do the checkpoints hold, and what did they do?
//
//   schedule         = by the first rate that both have under one name
//   effective update = rms(b − a) of a layer; in rates = that / (rate of b · steps between the two)

#include <algorithm>
#include <cmath>
#include <map>

#include "analyze/analysis.h"
#include "analyze/gates.h"
#include "analyze/hyperparameters.h"

namespace tensordiff {
namespace {

std::string_view schedule_of(double a, double b) {
  if (a == b) return "constant";
  return b < a ? "decayed" : "raised";
}

double rms_update(std::span<const Row* const> pairs) {
  double squares = 0, count = 0;
  for (const Row* pair : pairs) {
    squares += squares_of_change(pair->comparison);
    count += static_cast<double>(pair->comparison.diff.compared);
  }
  return count > 0 ? std::sqrt(squares / count) : 0;
}

void examine(const Study& study, Answer& answer) {
  const std::vector<Rate> rates = learning_rates(study);
  const auto both = std::ranges::find_if(rates, [](const Rate& rate) { return rate.a && rate.b; });
  if (both != rates.end())
    answer.field("schedule", schedule_of(*both->a, *both->b));
  else
    answer.unknown("schedule", "a learning rate of the same name in both checkpoints");
  std::optional<double> rate;
  if (!rates.empty()) {
    const Rate& first = both != rates.end() ? *both : rates[0];
    // Known on one side only, it may have changed or not.
    const auto known = [](const std::optional<double>& each) {
      return each ? Datum(*each) : Datum("unknown");
    };
    answer.field("lr_a", known(first.a)).field("lr_b", known(first.b));
    rate = first.b ? first.b : first.a;
  }
  std::optional<double> steps;
  if (const std::optional<StepsBetween> both_steps = steps_between(study))
    steps = std::abs(both_steps->b - both_steps->a);
  const std::vector<const Row*>& weights = study.weights();
  const double update = rms_update(weights);
  answer.field("effective_update", update);
  // Adam moves a parameter by about the rate in a step: 1 is a straight line, less is noise.
  const auto in_rates = [&](double size) {
    return rate && steps && *rate > 0 ? Datum(size / (*rate * *steps)) : Datum();
  };
  if (rate && steps && *rate > 0)
    answer.field("update_in_rates", in_rates(update)).field("steps", *steps);
  else
    answer.unknown("update_in_rates", "a learning rate, and step counters that differ");
  Listing& list = answer.list("rates", {"name", "a", "b"});
  for (const Rate& each : rates) list.add({each.name, each.a, each.b});
  Listing& layers = answer.list("layers", {"layer", "effective_update", "update_in_rates"});
  for (const auto& [depth, pairs] : by_depth(weights)) {
    const double size = rms_update(pairs);
    layers.add({depth, size, in_rates(size)});
  }
}

}  // namespace

std::vector<Rate> learning_rates(const Study& study) {
  std::map<std::string, Rate> rates;
  const auto collect = [&](const Facts& facts, std::optional<double> Rate::*side) {
    for (const std::string_view word : {"lr", "learning_rate"})
      for (const Fact* fact : facts.every(word)) {
        Rate& rate = rates[fact->name];
        rate.name = fact->name;
        rate.*side = fact->value;
      }
  };
  collect(study.facts_a(), &Rate::a);
  collect(study.facts_b(), &Rate::b);
  std::vector<Rate> found;
  for (auto& [name, rate] : rates) found.push_back(std::move(rate));
  return found;
}

constinit const Analysis analyses::learning_rate_analysis = {
    .name = "learning_rate_analysis",
    .flag = "--learning-rate-analysis",
    .question = "Which learning rates do the checkpoints hold, and what did they do?",
    .definition = "rates before and after; effective update by layer, in units of the rate",
    .examine = examine,
};

}  // namespace tensordiff
