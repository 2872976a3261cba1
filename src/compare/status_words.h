// The words for the statuses of a pair, in the order of the enum: outputs write them, and results
// of earlier runs are read by them.

#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "compare/comparison.h"

namespace tensordiff {

inline constexpr std::array<std::string_view, kStatuses> kStatusWords = {
    "identical", "equal", "close", "same_shape", "different", "incomparable", "error"};

constexpr std::optional<Status> status_named(std::string_view word) {
  const auto found = std::ranges::find(kStatusWords, word);
  if (found == kStatusWords.end()) return std::nullopt;
  return static_cast<Status>(found - kStatusWords.begin());
}

}  // namespace tensordiff
