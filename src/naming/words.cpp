#include "naming/words.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace tensordiff {

std::optional<int32_t> number_of(std::string_view word) {
  if (word.empty() || word.size() > kNumberDigitsMax || !all_digits(word)) return std::nullopt;
  int32_t value = 0;
  std::from_chars(word.data(), word.data() + word.size(), value);
  return value;
}

Words::Words(std::string_view lowered) {
  if (lowered.size() > kNameLengthMax) return;
  std::size_t first = 0;
  while (first < lowered.size()) {
    const std::size_t end = std::min(lowered.find_first_of("./_-:#=@", first), lowered.size());
    if (end > first) {
      if (size_ == kWordsMax) {
        size_ = 0;
        return;
      }
      words_[size_++] = lowered.substr(first, end - first);
    }
    first = end + 1;
  }
}

void Words::erase(std::size_t first, std::size_t count) {
  std::move(words_.begin() + first + count, words_.begin() + size_, words_.begin() + first);
  size_ -= count;
}

bool Words::has(std::size_t at, std::string_view dotted) const {
  for (const std::string_view word : split(dotted, '.'))
    if (at == size_ || words_[at++] != word) return false;
  return true;
}

std::string Words::joined(std::size_t first, std::size_t end) const {
  std::string text;
  for (std::size_t i = first; i < end; ++i) {
    if (i > first) text += '.';
    text += words_[i];
  }
  return text;
}

}  // namespace tensordiff
