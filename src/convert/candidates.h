// The forms that a pair could have by its shapes, from the simplest on.

#pragma once

#include <vector>

#include "convert/conversion.h"

namespace tensordiff {

// Axes dropped, merged, split or moved; shards put together; parts cut out. Equal shapes also in
// every order of axes of equal size: a square matrix transposed.
std::vector<Candidate> plain_candidates(const Operand& a, const Operand& b);

// The plain candidates of a pair with one side merged.
std::vector<Candidate> merged_candidates(const PairOperands& operands, const MergedOperand& merged);

// A plain candidate with the rows of one side in another order; with parts inside each head only
// where the tensor may hold several parts.
std::vector<Candidate> row_candidates(const Candidate& plain, bool may_be_fused = true);

// The same, but only with the rows in the other RoPE order.
std::vector<Candidate> rope_candidates(const Candidate& plain);

// Whether the parts of a form are equal parts of a tensor that both sides have as one: shift and
// scale, gate and up. The axis is that of its rows.
bool reorders_whole(const Form& form);

// A plain candidate with a function of A's values.
std::vector<Candidate> function_candidates(const Candidate& plain);

}  // namespace tensordiff
