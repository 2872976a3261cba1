// RoPE with the other pairing: b turns features (2i, 2i+1) of a head together where a turns
// (i, i + d/2), or the other way round.
//
// Both are learnt, each from its own input and output, and b's must be a rotation in its own right.

#include <fmt/format.h>

#include "diagnose/hypotheses/diagnosis.h"
#include "diagnose/replay/rotation.h"

namespace tensordiff {
namespace {

std::string_view name_of(RopePairing pairing) {
  return pairing == RopePairing::halves ? "(i, i + d/2)" : "(2i, 2i + 1)";
}

std::optional<Explanation> examine(const Case& it) {
  if (!it.rotary || it.rotary->same_pairing()) return std::nullopt;
  const Rotation &a = it.rotary->a, &b = it.rotary->b;
  Explanation result =
      explain_rotation(it, fmt::format("RoPE turns pairs {} in B and {} in A",
                                       name_of(b.form.pairing), name_of(a.form.pairing)));
  result.parameters = {{"a", std::string(name_of(a.form.pairing))},
                       {"b", std::string(name_of(b.form.pairing))},
                       {"head_dim", static_cast<double>(a.form.head_dim)}};
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
