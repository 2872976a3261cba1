// RoPE with other frequencies: another base, a scaling left out, no rotation at all.
//
// Each side's frequencies are learnt from its own input and output: how far a pair turns from one
// token to the next. What is left is how far b is from a rotation of its input.

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "diagnose/diagnosis.h"
#include "diagnose/fit.h"
#include "diagnose/rotation.h"

namespace tensordiff {
namespace {

// Noise moves an angle by about itself, and less where many heads share it.
constexpr double kTurnMin = 1e-3;
constexpr double kTurnRoundoffs = 8;

// How far the angles of the two drift apart from the first token on, at most.
double drift(const Rotation& a, const Rotation& b) {
  double most = 0;
  for (uint64_t token = 1; token < a.tokens; ++token) {
    for (uint64_t pair = 0; pair < a.pairs; ++pair) {
      const double start = b.angle(0, pair) - a.angle(0, pair);
      const double here = b.angle(token, pair) - a.angle(token, pair);
      most = std::max(most, std::abs(wrapped(here - start)));
    }
  }
  return most;
}

std::string describe(const Rotation& a, const Rotation& b) {
  bool still = true;
  for (const double angle : b.angles) still = still && std::abs(angle) < kTurnMin;
  if (still) return "b does not rotate at all";
  const double ratio = b.frequency(0) / a.frequency(0);
  bool constant = true;
  for (uint64_t pair = 0; pair < a.pairs / 2; ++pair)
    constant = constant && near(b.frequency(pair), ratio * a.frequency(pair), 0.02);
  if (constant && near(ratio, -1, 0.02)) return "RoPE turns the other way in b";
  if (constant) return fmt::format("RoPE turns {} times as fast in b", human_number(ratio));
  return fmt::format("RoPE has base {} in b and {} in a", human_number(base_of(b)),
                     human_number(base_of(a)));
}

std::optional<Explanation> examine(const Case& it) {
  const std::optional<RotaryStep> step = learn_step(it);
  if (!step || !step->same_pairing) return std::nullopt;
  const double most = drift(step->a, step->b);
  if (most < std::max(kTurnMin, kTurnRoundoffs * it.site.roundoff)) return std::nullopt;
  Explanation result;
  result.after = step->b.left * norm(it.b.values) / it.norm_a;
  result.text = describe(step->a, step->b);
  result.parameters = {
      {"base_a", base_of(step->a)}, {"base_b", base_of(step->b)}, {"drift_max", most}};
  return result;
}

}  // namespace

constinit const Diagnosis diagnoses::rope_frequency = {
    .code = "rope_frequency",
    .question = "Does RoPE turn at other frequencies?",
    .explains = "another base (theta), rope_scaling ignored, no rotation, the other direction",
    .replays = true,
    .examine = examine,
};

}  // namespace tensordiff
