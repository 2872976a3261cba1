// The step itself: its inputs agree, its output does not, and no transform of the output explains
// it. Another weight, another activation function, operands swapped.

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "diagnose/activation.h"
#include "diagnose/diagnosis.h"
#include "diagnose/linear_replay.h"

namespace tensordiff {
namespace {

std::string_view hint_for(Role role) {
  switch (role) {
    case Role::query:
    case Role::key:
    case Role::value:
    case Role::fused_qkv:
    case Role::attention_output:
    case Role::gate:
    case Role::up:
    case Role::logits:
      return "a projection: look at its weight (transposed, another layer's, another shard)";
    case Role::activation:
      return "an activation: look at which function it is (GELU by tanh or erf, SiLU)";
    case Role::gated:
    case Role::mlp_output:
      return "the MLP: look at the activation, at gate and up swapped, at the weights";
    case Role::attention_heads:
      return "attention: look at the mask, the scale, the mapping of heads and the cache";
    case Role::attention_norm:
    case Role::mlp_norm:
    case Role::branch_norm:
    case Role::final_norm:
      return "a norm: look at its kind, its weight and its epsilon";
    default:
      return "look at what this step computes";
  }
}

std::optional<Explanation> examine(const Case& it) {
  if (!it.site.bug() || it.site.inputs.empty()) return std::nullopt;
  if (std::optional<Explanation> replayed = replay_weights(it)) return replayed;
  Explanation result;
  result.after = it.before;
  result.settled = true;
  // Almost the same function, as GELU by tanh and by erf, or another altogether.
  const bool slight = it.before < 0.05;
  result.confidence = 0.7;
  result.text = fmt::format(
      "the step itself computes something {} ({}): no transform of its output explains it; {}",
      slight ? "slightly different" : "else", name_of(it.site.role), hint_for(it.site.role));
  result.parameters = {{"step", std::string(name_of(it.site.role))}};
  if (const auto step = learn_activation(it.run, it.site); step && !step->same) {
    result.confidence = 0.95;
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
