#include "match/crosswise.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "match/fingerprint.h"
#include "naming/numbered_name.h"

namespace tensordiff {
namespace {

constexpr double kSame = 0.02;           // Noise leaves less; a step beside it much more.
constexpr double kOther = 0.1;           // Of the pair as it was.
constexpr std::size_t kPatternsMax = 8;  // Without a partner. More are no slip of a convention.

using Numbers = std::vector<std::string>;
using Layers = std::map<Numbers, std::size_t>;  // Which tensor, or pair, has these numbers.

std::map<std::string, Layers> by_pattern(const std::vector<std::string>& names,
                                         const std::vector<std::size_t>& tensors) {
  std::map<std::string, Layers> patterns;
  for (const std::size_t tensor : tensors) {
    NumberedName name = numbered_name(names[tensor]);
    if (!name.numbers.empty()) patterns[name.pattern].emplace(std::move(name.numbers), tensor);
  }
  return patterns;
}

bool is_by_meaning(const Pair& pair) {
  const bool named =
      pair.matched_by == &matchers::conventions || pair.matched_by == &matchers::fuzzy;
  return named && !pair.section_a && !pair.section_b && !pair.tied;
}

bool same_numbers(const Layers& x, const Layers& y) {
  return std::ranges::equal(x, y, {}, &Layers::value_type::first, &Layers::value_type::first);
}

class Crosswise {
 public:
  Crosswise(MatchInput& input, Matching& matching)
      : input_(input), matching_(matching), pairs_(matching.pairs) {}

  void run() {
    auto left_a = by_pattern(input_.side_a.names, input_.free_a);
    auto left_b = by_pattern(input_.side_b.names, input_.free_b);
    if (std::max(left_a.size(), left_b.size()) > kPatternsMax) return;
    std::map<std::pair<std::string, std::string>, Layers> groups;
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      if (!is_by_meaning(pairs_[i])) continue;
      const NumberedName a = numbered_name(input_.side_a.names[pairs_[i].a]);
      const NumberedName b = numbered_name(input_.side_b.names[pairs_[i].b]);
      if (a.numbers == b.numbers) groups[{a.pattern, b.pattern}].emplace(a.numbers, i);
    }
    for (const auto& [patterns, group] : groups)
      for (auto& [pattern_a, of_a] : left_a)
        for (auto& [pattern_b, of_b] : left_b) {
          if (!same_numbers(group, of_a) || !same_numbers(group, of_b)) continue;
          if (!fits(group, of_a, of_b)) continue;
          matching_.notes.push_back(
              fmt::format("by their values '{}' is '{}' and '{}' is '{}', though the names of the "
                          "first and the last mean the same",
                          printable(patterns.first), printable(pattern_b), printable(pattern_a),
                          printable(patterns.second)));
          change(group, of_a, of_b);
          of_a.clear(), of_b.clear();  // Equal to no group from here on.
        }
  }

 private:
  double apart(std::size_t a, std::size_t b) {
    return disagreement(of(prints_a_, input_.a, a), of(prints_b_, input_.b, b));
  }

  static const Fingerprint& of(std::map<std::size_t, Fingerprint>& prints, const Catalog& catalog,
                               std::size_t tensor) {
    const auto found = prints.find(tensor);
    return found != prints.end()
               ? found->second
               : prints.emplace(tensor, fingerprint_of(catalog.tensors[tensor])).first->second;
  }

  bool fits(const Layers& group, const Layers& of_a, const Layers& of_b) {
    std::size_t crossed = 0;
    for (const auto& [numbers, index] : group) {
      const Pair& pair = pairs_[index];
      crossed += apart(pair.a, of_b.at(numbers)) < kSame &&
                 apart(of_a.at(numbers), pair.b) < kSame && apart(pair.a, pair.b) > kOther;
    }
    return 2 * crossed > group.size();
  }

  void change(const Layers& group, const Layers& of_a, const Layers& of_b) {
    for (const auto& [numbers, index] : group) {
      Pair other = pairs_[index];
      other.a = of_a.at(numbers);
      pairs_[index].b = of_b.at(numbers);
      other.matched_by = pairs_[index].matched_by = &matchers::value;
      std::erase(input_.free_a, other.a);
      std::erase(input_.free_b, pairs_[index].b);
      pairs_.push_back(std::move(other));
    }
  }

  MatchInput& input_;
  Matching& matching_;
  std::vector<Pair>& pairs_;
  std::map<std::size_t, Fingerprint> prints_a_, prints_b_;
};

}  // namespace

void uncross(MatchInput& input, Matching& matching) {
  if (input.options.read_values && !input.free_a.empty() && !input.free_b.empty())
    Crosswise(input, matching).run();
}

}  // namespace tensordiff
