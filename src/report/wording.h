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

// Everything there is to say about a row: its notes in words, then its message; "" for nothing.
std::string message_of(const PairRow& row);
std::string note_text(const LayoutNote& note);

// What a reordering of q and k is called, in the note of a pair and in that of the run.
inline constexpr std::string_view kRopeRows = "rows follow the other RoPE layout";

// The name of the strategy that paired the two.
std::string_view matched_by_text(const PairRow& row);

// How a step is spelled in every output, and what its numbers are called. A name that ends in
// "..." stands for a list of all that are left.
struct OpWords {
  std::string_view name;
  std::vector<std::string_view> arguments;
};
const OpWords& words_of(Op op);

// How the sides were brought to one shape: "a: squeeze axis 0".
std::string layout_text(const std::vector<Step>& steps);

// "0 %", "<0.1 %", "12.3 %", "100 %": all and none are said only when it is all or none.
std::string share_text(uint64_t part, uint64_t whole);

// Three digits, but whole numbers as they are: 0.125, 3.05e-07, 4096.
std::string short_number(double number);

// As short_number; "–" for a metric that is not defined.
std::string number_or_dash(const std::optional<double>& number);

// Six digits; never a perfect 1 for what is not.
std::string cosine_text(const std::optional<double>& cosine);

// "x", or "x → y" where they differ.
std::string both(std::string_view a, std::string_view b);

// The largest difference: "[3, 17] 1 → 1.01".
std::string where_text(const Diff& diff);

// The numbers as people are to see them. They run over positions where both sides are finite; a NaN
// or an infinity that only one side has is farther off than any number, and has no angle.
Diff as_shown(Diff diff);

// The shape they were compared in; both where there is none.
std::string shapes_of(const PairRow& row);

// "12 known differences, 1 new, 2 grown, 3 gone"
std::string baseline_text(const BaselineDelta& delta);

// A verdict for people: "known differences only" for "known".
std::string_view verdict_text(Conclusion verdict);

// A status for people: "same shape"; of a pair whose difference the baseline has, "known".
std::string_view status_text(Status status);
std::string_view status_text(const PairRow& row);

// "1 pair", "2 pairs".
std::string counted(uint64_t count, std::string_view noun);

}  // namespace tensordiff
