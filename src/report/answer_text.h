// The answer in the first lines of `-o text`, each with a label: the verdict and the place, the
// cause, the evidence, what else was found, the counts, and the two inputs.

#pragma once

#include <cstddef>
#include <string>

#include "report/report.h"
#include "report/style.h"

namespace tensordiff {

// "DIFFERENT  39 pairs: 15 different, 24 close; none unpaired": all of it in one line.
std::string verdict_line(const Report& report, const Style& style);

// The whole answer. A line that would be empty is left out.
std::string answer_lines(const Report& report, const Style& style, std::size_t width);

// Of weights: "6 of 6 tensors changed; largest change: fc2.bias (relative L2 0.343)". Empty where
// none changed.
std::string changes_text(const Report& report);

// "note       text", as all lines of the answer are laid out.
std::string labelled(std::string_view label, std::string_view text, const Style& style);

}  // namespace tensordiff
