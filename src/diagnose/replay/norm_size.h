// A norm by the size of what it gives.
//
// What a norm has normalised has root mean square 1 in every token, less what epsilon takes off:
// mean(((y − β) / w)²) = 1 − eps / (v + eps), with v what went in. Where the weight w and the bias
// β are known, that holds of b whatever came into it: another epsilon, weight or factor shows
// behind any mistake, without the residual stream.

#pragma once

#include <optional>

#include "diagnose/hypotheses/diagnosis.h"

namespace tensordiff {

struct NormMistake {
  const Diagnosis* diagnosis = nullptr;
  Explanation explanation;
};

// Nothing where the size of b's tokens is that of a norm, or where that is not known.
std::optional<NormMistake> wrong_size(const Case& it);

}  // namespace tensordiff
