// Which experts a difference in a mixture of experts belongs to.

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "align/aligner.h"
#include "dumps/tokens.h"
#include "report/report.h"
#include "tensor/catalog.h"

namespace tensordiff {

// The scores of experts on both sides, a row for each token, and how much of the error of the
// mixture each token has.
struct ExpertScores {
  uint64_t experts = 0;
  std::vector<double> a, b;
  std::vector<double> errors;  // Squared.
  std::vector<bool> differs;   // Beyond rounding.
};

// "routing flips in 3 of 24 tokens explain 62 % of the error, near ties only", or "the tokens of
// experts 3 and 5 differ, and no others: exchanged, or both wrong"; nothing where neither is so.
std::string experts_text(const ExpertScores& scores);

// Says at the first divergence which tokens differ (tell_tokens), and which experts, where that is
// in a mixture whose router was dumped.
void tell_reach(const std::vector<RunToken>& tokens,
                const std::function<Result<AlignedPair>(std::size_t pair)>& views_of,
                Report& report);

}  // namespace tensordiff
