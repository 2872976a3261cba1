#include "match/meaning.h"

namespace tensordiff {

Meanings meanings_of(const std::vector<std::string>& names, const std::vector<std::size_t>& free) {
  std::map<CanonicalName, std::vector<std::size_t>> by_meaning;
  for (const std::size_t tensor : free)
    if (std::optional<CanonicalName> meaning = canonical_name(names[tensor]))
      by_meaning[std::move(*meaning)].push_back(tensor);

  Meanings result;
  for (const auto& [meaning, tensors] : by_meaning) {
    if (tensors.size() == 1) {
      result.tensors.emplace(meaning, tensors[0]);
      continue;
    }
    std::map<std::string_view, std::vector<std::size_t>> by_tower;
    for (const std::size_t tensor : tensors) by_tower[tower_of(names[tensor])].push_back(tensor);
    for (const auto& [tower, same] : by_tower) {
      CanonicalName full = meaning;
      full.tower = tower;
      if (same.size() == 1)
        result.tensors.emplace(std::move(full), same[0]);
      else
        result.ambiguous.emplace_back(same[0], same[1]);
    }
  }
  return result;
}

}  // namespace tensordiff
