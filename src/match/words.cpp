#include "match/words.h"

#include <algorithm>

namespace tensordiff {
namespace {

constexpr double kShortForm = 0.8;
constexpr std::size_t kShortFormLetters = 3;  // Fewer letters are in too many words.

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }

// The letters of one stand in the other, in order, from its first one on.
bool is_short_form(std::string_view part, std::string_view whole) {
  if (part.size() < kShortFormLetters || part.size() >= whole.size() || part[0] != whole[0])
    return false;
  std::size_t at = 0;
  for (const char c : whole)
    if (at < part.size() && part[at] == c) ++at;
  return at == part.size();
}

}  // namespace

double word_likeness(std::string_view a, std::string_view b) {
  if (a == b) return 1;
  return is_short_form(a, b) || is_short_form(b, a) ? kShortForm : 0;
}

NameWords name_words(std::string_view name) {
  NameWords result;
  for (std::size_t at = 0; at < name.size();) {
    std::size_t end = at;
    if (is_digit(name[at])) {
      while (end < name.size() && is_digit(name[end])) ++end;
      result.numbers.emplace_back(name.substr(at, end - at));
    } else if (is_letter(name[at])) {
      ++end;  // A capital inside starts a new word: "LayerNorm" has two.
      while (end < name.size() && is_letter(name[end]) &&
             !(is_upper(name[end]) && !is_upper(name[end - 1])))
        ++end;
      std::string word(name.substr(at, end - at));
      for (char& c : word) c = is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
      result.words.push_back(std::move(word));
    } else {
      ++end;
    }
    at = end;
  }
  return result;
}

double similarity(const NameWords& a, const NameWords& b) {
  if (a.words.empty() || b.words.empty()) return 0;
  std::vector<bool> used(b.words.size());
  double common = 0;
  for (const std::string& word : a.words) {
    double best = 0;
    std::size_t which = 0;
    for (std::size_t i = 0; i < b.words.size(); ++i) {
      const double here = used[i] ? 0 : word_likeness(word, b.words[i]);
      if (here > best) best = here, which = i;
    }
    if (best > 0) used[which] = true;
    common += best;
  }
  return 2 * common / static_cast<double>(a.words.size() + b.words.size());
}

}  // namespace tensordiff
