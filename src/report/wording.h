// What a report says in words: the odd cases that numbers alone would hide.

#pragma once

#include <string>
#include <vector>

#include "report/report.h"

namespace tensordiff {

// "all zeros", "constant 0.5", "all NaN", "empty", or "" for a tensor like any other.
std::string character(const Stats& stats, const Shape& shape);

// What the reader of a row must know beside its numbers, a sentence each.
std::vector<std::string> remarks(const PairRow& row);

// How the sides were brought to one shape: "a: squeeze axis 0".
std::string layout_text(const std::vector<Step>& steps);

// "0 %", "<0.1 %", "12.3 %", "100 %": all and none are said only when it is all or none.
std::string share_text(uint64_t part, uint64_t whole);

// "1 pair", "2 pairs".
std::string counted(uint64_t count, std::string_view noun);

}  // namespace tensordiff
