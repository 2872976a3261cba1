// Finds the name that is most like another without comparing it with all there are.

#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "match/words.h"

namespace tensordiff {

// How much less alike all others have to be for a name to be meant.
inline constexpr double kClearlyMost = 0.1;

// What was found for a name.
struct Likeliest {
  std::size_t index = 0;
  double score = 0;      // As of similarity(); 0: no name has a word in common.
  double next = 0;       // That of the next best.
  bool complete = true;  // False where there were too many to look at them all.
};

// The names by their words. A search takes the rarest words of a name first, and ends where names
// that have none of these cannot come near the best any more.
class NameIndex {
 public:
  explicit NameIndex(std::vector<NameWords> names);

  using Eligible = std::function<bool(std::size_t)>;
  struct Search {
    double margin = 0;                // Names that come so near to the best are not missed.
    std::size_t looks_max = 1 << 12;  // Names to look at.
    Eligible eligible = {};           // Which names count; empty: all.
  };
  Likeliest find(const NameWords& name, const Search& search);

 private:
  using Places = std::vector<std::size_t>;  // Indexes of names.

  const std::vector<std::size_t>& alike(const std::string& word);

  std::vector<NameWords> names_;
  std::vector<std::string> words_;
  std::unordered_map<std::string, std::size_t> word_numbers_;
  std::vector<Places> places_;                                       // Of each word.
  std::unordered_map<char, std::vector<std::size_t>> by_letter_;     // Words by their first.
  std::unordered_map<std::string, std::vector<std::size_t>> alike_;  // Words found like a word.
  std::vector<std::size_t> seen_;  // In which search each name was last looked at.
  std::size_t searches_ = 0;
};

}  // namespace tensordiff
