// RoPE with the other pairing: b turns features (2i, 2i+1) of a head together where a turns
// (i, i + d/2), or the other way round.
//
// a's angles, learnt from a alone, must turn b's own input into b's output once they are applied to
// b's pairs.

#include <fmt/format.h>

#include "diagnose/diagnosis.h"
#include "diagnose/fit.h"
#include "diagnose/rotation.h"

namespace tensordiff {
namespace {

std::string_view name_of(Pairing pairing) {
  return pairing == Pairing::halves ? "(i, i + d/2)" : "(2i, 2i + 1)";
}

std::optional<Explanation> examine(const Case& it) {
  const std::optional<RotaryStep> step = learn_step(it);
  if (!step || step->same_pairing) return std::nullopt;
  Explanation result;
  result.after = step->b.left * norm(it.b.values) / it.norm_a;
  result.text = fmt::format("RoPE turns pairs {} in b and {} in a", name_of(step->b.pairing),
                            name_of(step->a.pairing));
  result.parameters = {{"a", std::string(name_of(step->a.pairing))},
                       {"b", std::string(name_of(step->b.pairing))},
                       {"head_dim", static_cast<double>(step->a.head_dim)}};
  return result;
}

}  // namespace

constinit const Diagnosis diagnoses::rope_pairing = {
    .code = "rope_pairing",
    .question = "Does RoPE pair other features?",
    .explains = "the interleaved form of RoPE on weights made for the half form, or the reverse",
    .replays = true,
    .examine = examine,
};

}  // namespace tensordiff
