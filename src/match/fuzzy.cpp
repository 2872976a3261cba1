// Pairs names whose words are alike, where the numbers in them are the same and neither name is
// nearly as much like any other: one clear best, or none.

#include <algorithm>
#include <map>

#include "base/text.h"
#include "match/matcher.h"
#include "match/words.h"

namespace tensordiff {
namespace {

constexpr double kMargin = 0.1;                   // How much less alike all others have to be.
constexpr std::size_t kComparisonsMax = 1 << 20;  // Names with one set of numbers, of a times of b.

struct Entry {
  std::size_t tensor;
  NameWords name;
};
using ByNumbers = std::map<std::vector<std::string>, std::vector<Entry>>;

ByNumbers by_numbers(const Catalog& catalog, const std::vector<std::size_t>& free) {
  ByNumbers result;
  for (const std::size_t tensor : free) {
    NameWords name = name_words(catalog.tensors[tensor].name);
    std::vector<std::string> numbers = name.numbers;
    result[std::move(numbers)].push_back({tensor, std::move(name)});
  }
  return result;
}

// The best of a row or column of scores, and the one after it.
struct Best {
  std::size_t index = 0;
  double score = 0, next = 0;

  void see(std::size_t candidate, double value) {
    if (value > score) {
      next = score, score = value, index = candidate;
    } else {
      next = std::max(next, value);
    }
  }
  bool clear(double threshold) const { return score >= threshold && score - next >= kMargin; }
};

bool may_be_same(const Tensor& a, const Tensor& b) {
  if (!a.shards.empty() || !b.shards.empty() || !a.fault.empty() || !b.fault.empty()) return true;
  return a.elements() == b.elements();
}

void pair_group(const MatchInput& input, const std::vector<Entry>& a, const std::vector<Entry>& b,
                Proposal& proposal) {
  std::vector<Best> of_a(a.size()), of_b(b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < b.size(); ++j) {
      if (!may_be_same(input.a.tensors[a[i].tensor], input.b.tensors[b[j].tensor])) continue;
      const double score = similarity(a[i].name, b[j].name);
      of_a[i].see(j, score);
      of_b[j].see(i, score);
    }
  }
  const double threshold = input.options.fuzzy_threshold;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::size_t j = of_a[i].index;
    if (!of_a[i].clear(threshold) || !of_b[j].clear(threshold) || of_b[j].index != i) continue;
    proposal.pairs.push_back(
        {.a = a[i].tensor, .b = b[j].tensor, .layer = {}, .stage = {}, .matched_by = {}});
  }
}

Proposal propose(const MatchInput& input) {
  const ByNumbers of_b = by_numbers(input.b, input.free_b);
  Proposal proposal;
  std::size_t left = kComparisonsMax;
  for (const auto& [numbers, group] : by_numbers(input.a, input.free_a)) {
    const auto found = of_b.find(numbers);
    if (found == of_b.end()) continue;
    const std::size_t cost = group.size() * found->second.size();
    if (cost > left) {
      proposal.notes.push_back("too many names have no partner to compare each with each");
      break;
    }
    left -= cost;
    pair_group(input, group, found->second, proposal);
  }
  return proposal;
}

}  // namespace

constinit const Matcher matchers::fuzzy = {
    .name = "fuzzy",
    .summary = "the words of the names are alike, and like no other",
    .propose = propose,
};

}  // namespace tensordiff
