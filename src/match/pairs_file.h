// Pairs that the user names in a file: --pairs, and --save-pairs to write one.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tensordiff {

struct NamePair {
  std::string a, b;

  bool operator==(const NamePair&) const = default;
};

// JSON, {"name of a": "name of b"} or [["name of a", "name of b"]], or YAML of the simplest form,
// a line "name of a: name of b" for each pair, names in quotes where they hold ": " or '#'.
Result<std::vector<NamePair>> parse_pairs(std::string_view text);

// Such a file, which is both JSON strings and YAML lines.
std::string pairs_text(const std::vector<NamePair>& pairs);

}  // namespace tensordiff
