// RoPE with other frequencies: another base, a scaling left out, fewer features turned, no rotation
// at all.
//
// Each side's angles are learnt from its own input and output. Where they drift apart from token
// to token, the frequencies differ; what is left is how far b is from a rotation of its input.

#include <fmt/format.h>

#include <cmath>
#include <complex>

#include "base/text.h"
#include "diagnose/hypotheses/diagnosis.h"
#include "diagnose/limits.h"
#include "diagnose/replay/rotation.h"
#include "diagnose/sample/fit.h"

namespace tensordiff {
namespace {

// By how much the angles of the two drift apart, in radians: the root mean square of what a turn
// that all tokens share leaves, each angle by what speaks for it.
double drift(const Rotation& a, const Rotation& b) {
  double sum = 0, all = 0;
  for (uint64_t pair = 0; pair < a.form.pairs(); ++pair) {
    std::complex<double> shared = 0;
    const auto apart = [&](uint64_t token) { return b.angle(token, pair) - a.angle(token, pair); };
    const auto trust = [&](uint64_t token) {
      return std::sqrt(a.strength_of(token, pair) * b.strength_of(token, pair));
    };
    for (uint64_t token = 0; token < a.tokens; ++token)
      shared += std::polar(trust(token), apart(token));
    for (uint64_t token = 0; token < a.tokens; ++token) {
      const double turn = wrapped(apart(token) - std::arg(shared));
      sum += trust(token) * turn * turn;
      all += trust(token);
    }
  }
  return all > 0 ? std::sqrt(sum / all) : 0;
}

bool stands_still(const Rotation& rotation) {
  double sum = 0, all = 0;
  for (std::size_t i = 0; i < rotation.angles.size(); ++i) {
    sum += rotation.strength[i] * rotation.angles[i] * rotation.angles[i];
    all += rotation.strength[i];
  }
  return all > 0 && std::sqrt(sum / all) < 0.01;
}

std::string describe(const Rotation& a, const Rotation& b) {
  if (stands_still(b)) return "B does not rotate at all";
  if (stands_still(a)) return "B rotates and A does not";
  if (a.form.turned != b.form.turned)
    return fmt::format("RoPE turns {} features of each head in B and {} in A", b.form.turned,
                       a.form.turned);
  const double ratio = b.frequency(0) / a.frequency(0);
  bool constant = true;
  for (uint64_t pair = 0; pair < a.form.pairs() / 2; ++pair)
    constant = constant && near(b.frequency(pair), ratio * a.frequency(pair), 0.02);
  if (constant && near(ratio, -1, 0.02)) return "RoPE turns the other way in B";
  if (constant) return fmt::format("RoPE turns {} times as fast in B", human_number(ratio));
  return fmt::format("RoPE has base {} in B and {} in A", human_number(base_of(b)),
                     human_number(base_of(a)));
}

std::optional<Explanation> examine(const Case& it) {
  if (!it.rotary || !it.rotary->same_norm()) return std::nullopt;
  const Rotation &a = it.rotary->a, &b = it.rotary->b;
  const bool same_size = it.rotary->same_size();
  if (same_size && !it.rotary->same_pairing()) return std::nullopt;
  const double apart = same_size ? drift(a, b) : 1;
  if (apart < std::max(limits::kTurn, limits::kTurnRoundoffs * it.site.roundoff))
    return std::nullopt;
  Explanation result = explain_rotation(it, describe(a, b));
  result.parameters = {{"base_a", base_of(a)}, {"base_b", base_of(b)}, {"drift", apart}};
  if (const auto& theta = it.run.facts.rope_theta) {
    result.text += fmt::format("; the configuration says {}", human_number(*theta));
    result.parameters.push_back({"base_config", *theta});
  }
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
