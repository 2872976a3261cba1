// The step itself: its inputs agree, its output does not, and no transform of the output explains
// it. Another weight, another activation function, operands swapped.

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "diagnose/hypotheses/diagnosis.h"
#include "diagnose/replay/activation.h"
#include "diagnose/replay/linear_replay.h"

namespace tensordiff {
namespace {

// What to do next. Which of its parts is wrong is a guess, and was wrong more often than right.
std::string_view hint_for(const Run& run) {
  return run.weights.empty() ? "--weights MODEL may tell what it does instead"
                             : "--explain lists what was tried with the weights";
}

std::optional<Explanation> examine(const Case& it) {
  if (!it.site.bug() || it.site.inputs.empty()) return std::nullopt;
  if (std::optional<Explanation> replayed = replay_weights(it)) return replayed;
  Explanation result;
  result.after = it.before;
  result.settled = true;
  // Almost the same function, as GELU by tanh and by erf, or another altogether.
  const bool slight = it.before < 0.05;
  result.text = fmt::format(
      "the step itself computes something {} ({}): no transform of its output explains it; {}",
      slight ? "slightly different" : "else", name_of(it.site.role), hint_for(it.run));
  result.parameters = {{"step", std::string(name_of(it.site.role))}};
  if (const auto step = learn_activation(it.run, it.site); step && !step->same) {
    result.text = fmt::format("B applies {}, A applies {}", step->of_b, step->of_a);
    result.parameters.push_back({"function_a", std::string(step->of_a)});
    result.parameters.push_back({"function_b", std::string(step->of_b)});
  }
  return result;
}

}  // namespace

std::optional<Explanation> replay_weights(const Case& it) {
  for (const auto replayed : {replay_projection, replay_mlp}) {
    std::optional<Explanation> found = replayed(it);
    if (found && found->settled) {
      found->parameters.push_back({"step", std::string(name_of(it.site.role))});
      return found;
    }
  }
  return std::nullopt;
}

constinit const Diagnosis diagnoses::operator_step = {
    .code = "operator",
    .question = "Does the step itself compute something else?",
    .explains = "another weight, another activation function, swapped operands",
    .examine = examine,
};

}  // namespace tensordiff
