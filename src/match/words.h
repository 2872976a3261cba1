// How alike two names are, by their words.

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tensordiff {

// The words of a name in lower case, and its numbers apart from them.
struct NameWords {
  std::vector<std::string> words;
  std::vector<std::string> numbers;
};
NameWords name_words(std::string_view name);

// 1 for the same word, less for a short form of it, 0 for any other.
double word_likeness(std::string_view a, std::string_view b);

// From 0 to 1: twice the words that both have over all words. A short form of a word ("attn" for
// "attention") counts for most of it.
double similarity(const NameWords& a, const NameWords& b);

}  // namespace tensordiff
