// Statistics that stand for tensors, as some programs write them in place of the elements.

#pragma once

#include <string_view>

namespace tensordiff {

// What msprobe tells of each tensor, in this order: Tensor::made_from of what is read of it.
inline constexpr std::string_view kProbeStatistics = "max, min, mean, norm";

}  // namespace tensordiff
