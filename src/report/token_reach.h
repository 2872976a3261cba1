// Which tokens differ where two dumps part, in words that a user knows: sequences and positions.

#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "align/aligner.h"
#include "dumps/tokens.h"
#include "report/report.h"
#include "tensor/catalog.h"

namespace tensordiff {

using TokenRows = std::set<uint64_t>;

// The tokens of a run in which two views differ by more than rounding; nothing where no axis has
// as many elements as there are tokens. Views may have the tokens as [batch, length, …].
std::optional<TokenRows> rows_apart(const AlignedPair& views, uint64_t tokens, uint64_t batch = 1);

// The squared difference in each of them.
std::optional<std::vector<double>> errors_by_token(const AlignedPair& views, uint64_t tokens,
                                                   uint64_t batch = 1);

// "from position 8 on", "of sequence 1", "of sequence 0 at positions 3–5".
std::string reach_text(const TokenRows& rows, const std::vector<RunToken>& tokens);

// Which passes of the run these tokens are, where they are whole passes or lie in one: "the second
// chunk", "from the third decode step on". Empty where the run has one pass, or no words fit.
std::string passes_text(const TokenRows& rows, const std::vector<RunToken>& tokens);

// Says it at the first divergence, where the dumps tell which row is which token and not all of
// them differ: "only tokens from position 8 on differ, in every layer from 2 on: the second chunk".
void tell_tokens(const std::vector<RunToken>& tokens,
                 const std::function<Result<AlignedPair>(std::size_t pair)>& views_of,
                 Report& report);

}  // namespace tensordiff
