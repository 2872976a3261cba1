// A name a shares with a name b at most the words it has left once the words already searched are
// taken out. With r words left of n, 2 r / (n + r) is the most that a b not seen yet can score: it
// has those r words and no other.

#include "match/name_index.h"

#include <algorithm>

namespace tensordiff {
namespace {

constexpr std::size_t kWordsWithLetterMax = 1 << 11;  // More are not searched for short forms.

}  // namespace

NameIndex::NameIndex(std::vector<NameWords> names)
    : names_(std::move(names)), seen_(names_.size()) {
  for (std::size_t i = 0; i < names_.size(); ++i) {
    for (const std::string& word : names_[i].words) {
      const auto [at, added] = word_numbers_.emplace(word, words_.size());
      if (added) {
        words_.push_back(word);
        places_.emplace_back();
        by_letter_[word[0]].push_back(at->second);
      }
      Places& places = places_[at->second];
      if (places.empty() || places.back() != i) places.push_back(i);
    }
  }
}

const std::vector<std::size_t>& NameIndex::alike(const std::string& word) {
  const auto [at, added] = alike_.try_emplace(word);
  if (!added) return at->second;
  const std::vector<std::size_t>& candidates = by_letter_[word[0]];
  if (candidates.size() <= kWordsWithLetterMax) {
    for (const std::size_t candidate : candidates)
      if (word_likeness(word, words_[candidate]) > 0) at->second.push_back(candidate);
  } else if (const auto same = word_numbers_.find(word); same != word_numbers_.end()) {
    at->second.push_back(same->second);
  }
  return at->second;
}

Likeliest NameIndex::find(const NameWords& name, const Search& search) {
  ++searches_;
  struct Word {
    std::size_t names = 0;  // That have one like it.
    const std::vector<std::size_t>* alike;
  };
  std::vector<Word> words;
  for (const std::string& word : name.words) {
    words.push_back({0, &alike(word)});
    for (const std::size_t each : *words.back().alike) words.back().names += places_[each].size();
  }
  std::ranges::stable_sort(words, {}, &Word::names);

  Likeliest best;
  std::size_t looks = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const double left = static_cast<double>(words.size() - i);
    const double bound = 2 * left / (static_cast<double>(words.size()) + left);
    if (best.score > 0 && (bound <= best.score - search.margin)) break;
    for (const std::size_t word : *words[i].alike) {
      for (const std::size_t place : places_[word]) {
        if (seen_[place] == searches_) continue;
        seen_[place] = searches_;
        if (++looks > search.looks_max) {
          best.complete = false;
          return best;
        }
        if (search.eligible && !search.eligible(place)) continue;
        const double score = similarity(name, names_[place]);
        if (score > best.score)
          best = {place, score, best.score, true};
        else
          best.next = std::max(best.next, score);
      }
    }
  }
  return best;
}

}  // namespace tensordiff
