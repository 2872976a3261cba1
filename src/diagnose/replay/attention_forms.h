// Which form of attention a computes: the simplest that makes a's output of a's own inputs.

#pragma once

#include "diagnose/replay/attention.h"

namespace tensordiff {

struct LearntAttention {
  AttentionForm form;
  std::vector<uint64_t> rows;  // That it was tried on.
  double left = 1;             // What it leaves of them.
};

// The case has a's output, from the first token on. Nothing where no form is known that fits.
std::optional<LearntAttention> learn_form(const Case& it, const AttentionInputs& in);

// What a's own form may leave of a's output.
double own_fit(double roundoff);

// The windows that the dumps or the configuration tell of, and none (0).
std::vector<uint64_t> plausible_windows(const Case& it, const AttentionInputs& in);

// Queries and keys with the RoPE of a form, where it has one.
AttentionInputs turned(const AttentionInputs& in, const AttentionForm& form);

}  // namespace tensordiff
