// A name as a pattern and its numbers: "h.0.foo" is "h.#.foo" with 0.

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tensordiff {

struct NumberedName {
  std::string pattern;
  std::vector<std::string> numbers;

  auto operator<=>(const NumberedName&) const = default;
};

inline NumberedName numbered_name(std::string_view name) {
  NumberedName result;
  for (std::size_t at = 0; at < name.size();) {
    std::size_t end = at;
    while (end < name.size() && name[end] >= '0' && name[end] <= '9') ++end;
    if (end == at) {
      result.pattern += name[at++];
      continue;
    }
    result.pattern += '#';
    result.numbers.emplace_back(name.substr(at, end - at));
    at = end;
  }
  return result;
}

}  // namespace tensordiff
