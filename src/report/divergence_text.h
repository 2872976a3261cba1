// Where the two diverge and why, in sentences.

#pragma once

#include <string>

#include "report/report.h"
#include "report/style.h"

namespace tensordiff {

// The first pair in display order that is not close.
std::optional<FirstDivergence> first_divergence(const std::vector<PairRow>& rows);

// "a_name", or "a_name → b_name" where they differ.
std::string names_of(const PairRow& row);
std::string name_of_a(const PairRow& row);

// "in layer 1 at post_attn", or "at NAME" where layers are not known.
std::string place_of(const PairRow& row);

// The first finding about a pair; nullptr for none.
const Finding* finding_at(const Report& report, std::size_t pair);

// "B = 0.125 × A; residual 0.875 → 2e-07"
std::string cause_of(const Finding& finding);
// That of what was found there, or else what is said of the pair; may be empty.
std::string cause_at(const Report& report, std::size_t pair);

// "91 %", "99.9 %": what is not certain is never rounded up to it.
std::string confidence_text(double confidence);

std::string capitalised(std::string text);

// The smallest relative tolerance that every pair passes with; empty where nothing was compared.
std::string needed_line(const Report& report, const Style& style);

}  // namespace tensordiff
