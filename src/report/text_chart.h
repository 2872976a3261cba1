// Charts of analyses drawn with characters, for the terminal.

#pragma once

#include <string>

#include "analyze/answer.h"
#include "report/style.h"

namespace tensordiff {

// A title and a line for each bar, point or row; "" where there is nothing to draw.
std::string chart_text(const Chart& chart, const Style& style, std::size_t width);

// Text in lines of at most `width` columns, broken at spaces, each after the first behind `indent`.
// Of the first line, `used` columns are taken.
std::string wrapped(std::string_view text, std::size_t width, std::string_view indent,
                    std::size_t used = 0);

}  // namespace tensordiff
