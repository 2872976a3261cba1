// Which words of the names of A stand for which words of B's, as all pairs show them.
//
// Two tensors of one size that a converter exchanged are paired by their values, and nothing is
// left of the mistake but their names: "self.k" is "cross_k" in one layer, where "self" is "self"
// everywhere else. So what tells the two names of one side apart is looked up in all other pairs:
// where their words go the other way, in both names, the values are those of an exchange. However
// deep a word stands in its name does not matter, for the two sides seldom nest alike.

#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "match/matcher.h"

namespace tensordiff {

class WordMap {
 public:
  explicit WordMap(const MatchInput& input);

  // Counts the words of a pair once more, or, with -1, once less.
  void add(const Pair& pair, int count);

  // Whether the words of all other pairs say that these two changed partners. Both must count.
  bool speak_for_exchange(const Pair& x, const Pair& y) const;

 private:
  using Words = std::vector<uint32_t>;  // Sorted.

  std::vector<Words> words_of(const std::vector<std::string>& names);
  uint32_t number_of(std::string word);
  int64_t most(const Words& a, const Words& b) const;

  std::unordered_map<std::string, uint32_t> numbers_;
  std::vector<bool> spelled_;  // By word: letters alone, which may stand for itself.
  std::vector<Words> a_, b_;
  std::unordered_map<uint64_t, int64_t> both_;
};

// Whether values made the pair: of whole tensors, or of parts of a fused one.
bool is_found_by_value(const Pair& pair);

// Gives such pairs of one size the partners that their words say. How many changed.
std::size_t exchange_by_words(const MatchInput& input, std::vector<Pair>& pairs);

}  // namespace tensordiff
