// Which tokens differ where two dumps part, in words that a user knows: sequences and positions.

#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "align/aligner.h"
#include "report/report.h"
#include "tensor/catalog.h"

namespace tensordiff {

using TokenRows = std::set<uint64_t>;

// The tokens of a run in which two views differ by more than rounding; nothing where no axis has
// as many elements as there are tokens.
std::optional<TokenRows> rows_apart(const AlignedPair& views, uint64_t tokens);

// The squared difference in each of them.
std::optional<std::vector<double>> errors_by_token(const AlignedPair& views, uint64_t tokens);

// "from position 8 on", "of sequence 1", "of sequence 0 at positions 3–5".
std::string reach_text(const TokenRows& rows, const std::vector<Token>& tokens);

// Says it at the first divergence, where the dumps tell which row is which token and not all of
// them differ: "only tokens from position 8 on differ, in every layer from 2 on".
void tell_tokens(const std::vector<Token>& tokens,
                 const std::function<Result<AlignedPair>(std::size_t pair)>& views_of,
                 Report& report);

}  // namespace tensordiff
