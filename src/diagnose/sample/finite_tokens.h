// The tokens before the first that is no number.
//
// Where attention is causal, a token that is NaN makes all later ones NaN, and that hides what else
// is wrong with them. Those before it are a run by themselves.

#pragma once

#include <optional>
#include <vector>

#include "diagnose/site.h"

namespace tensordiff {

struct FiniteTokens {
  std::vector<Site> sites;  // With these tokens alone, compared again.
  uint64_t tokens = 0;
};

// Nothing where no step makes NaN or infinities of numbers, or too few tokens come before them.
std::optional<FiniteTokens> tokens_before_nonfinite(const Run& run);

}  // namespace tensordiff
