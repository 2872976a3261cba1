// Tokens of a mixture of experts that took another expert.
//
// A router picks the experts with the largest scores. Where two are nearly equal, rounding decides,
// and the token comes out otherwise though nothing is wrong. It is told from a mistake by its
// looks: few tokens, here and there, as many as the error that goes in makes likely; each still
// akin to what it was, as its other experts are the same, and off in all features rather than by a
// factor.

#pragma once

#include <cstdint>
#include <vector>

#include "diagnose/site.h"

namespace tensordiff {

// The tokens that seem to have taken another expert, where they are all of the difference that is
// more than `limit` of a token; else none.
std::vector<uint64_t> rerouted_tokens(const Run& run, const Site& site, double limit);

// The rows that seem to be others of a table, where they are all of the difference: what comes in
// differs in most elements, and all other rows are the same to the bit, as where each is the
// nearest of some codes. None where these are more than ties make likely, or next to each other.
std::vector<uint64_t> rechosen_rows(const Run& run, const Site& site);

// Whether a step is called by each expert of a layer, as their activation "mlp.experts.act_fn": its
// one entry holds the tokens of the expert that called it last.
bool is_shared_by_experts(const Site& site);

// Whether an expert's step has more or fewer tokens in B, by no more than ties make likely.
bool got_other_tokens(const Run& run, const Site& site);

// What is left of the error of an expert's step where its tokens are taken as a set; nothing where
// it is no expert's, or too many tokens have no partner within a limit.
std::optional<double> left_as_sets(const Run& run, const Site& site, double limit);

}  // namespace tensordiff
