// Statistics that stand for tensors, as some programs write them in place of the elements.

#pragma once

#include <string_view>

namespace tensordiff {

// Tensor::made_from of statistics begins so; their names follow, in order, divided by commas.
inline constexpr std::string_view kStatisticsMark = "statistics: ";
// What msprobe tells of each tensor.
inline constexpr std::string_view kProbeStatistics = "max, min, mean, norm";

}  // namespace tensordiff
