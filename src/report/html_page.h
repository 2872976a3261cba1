// What is the same in every page: its styles and its script. Both are named by their digest in the
// page's policy, so nothing else in it can run or be styled.

#pragma once

#include <string_view>

namespace tensordiff {

// Colours of the classes that charts are drawn with, for light and for dark.
extern const std::string_view kChartStyle;
extern const std::string_view kPageStyle;
extern const std::string_view kPageScript;

}  // namespace tensordiff
