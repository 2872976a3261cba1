// Pairs that values made against the numbers in the names.
//
// A converter numbers layers in order: where values say that "h.0.foo" is "decoder_1/bar" and
// "h.1.foo" is "decoder_0/bar", two layers were exchanged, and to pair them so would hide it. Pairs
// of one kind (the same names but for their numbers) must therefore follow one increasing map from
// the numbers of A to those of B, or, from three numbers on, its reversal: some converters count
// blocks from the other end. Pairs that do not are paired again by the map, and a note says so.

#pragma once

#include "match/matcher.h"

namespace tensordiff {

void pair_by_numbers(const MatchInput& input, Matching& matching);

// Names in which the first of several siblings has no number, as Keras writes them, with the number
// 0: "decoder/w" beside "decoder_1/w" becomes "decoder_0/w".
std::vector<std::string> with_first_numbers(const std::vector<std::string>& names);

}  // namespace tensordiff
