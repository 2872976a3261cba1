// A name as its words: "model.layers.3.q_proj" is model, layers, 3, q, proj.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tensor/place.h"

namespace tensordiff {

// Names are as long as whoever wrote the file likes. What is longer has no words.
inline constexpr std::size_t kNameLengthMax = 4096;  // As long as a path may be.
inline constexpr std::size_t kWordsMax = 64;
// Longer numbers are no layers, ranks or calls; so all fit an int32_t.
inline constexpr std::size_t kNumberDigitsMax = 9;

// The value of a word that is a number.
std::optional<int32_t> number_of(std::string_view word);

class Words {
 public:
  Words() = default;
  // `lowered` is a name in lower case that outlives the words.
  explicit Words(std::string_view lowered);

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::string_view operator[](std::size_t i) const { return words_[i]; }
  std::string_view back() const { return words_[size_ - 1]; }
  void pop_back() { --size_; }
  void replace_back(std::string_view word) { words_[size_ - 1] = word; }
  void erase(std::size_t first, std::size_t count);
  // Whether these words stand from `at` on.
  bool has(std::size_t at, std::string_view dotted) const;

  // Those from `first` to `end`, joined by dots.
  std::string joined(std::size_t first, std::size_t end) const;
  std::string joined(std::size_t first = 0) const { return joined(first, size_); }

 private:
  std::array<std::string_view, kWordsMax> words_;
  std::size_t size_ = 0;
};

// A word for something that is counted, and its number: "layers.3", "layer3".
struct Counted {
  std::size_t word = 0;     // Its index.
  std::size_t words = 0;    // How many words it takes: 1 or 2.
  std::string_view marker;  // "layers"
  std::string_view digits;  // "3"
  int32_t number = 0;
};

// The first of the words from `from` on that counts something: is(marker) tells which do.
template <class Is>
std::optional<Counted> find_counted(const Words& words, std::size_t from, const Is& is) {
  for (std::size_t i = from; i < words.size(); ++i) {
    const std::string_view word = words[i];
    const std::size_t letters = word.find_last_not_of("0123456789") + 1;
    if (letters == 0) continue;
    const std::string_view marker = word.substr(0, letters);
    const bool glued = letters < word.size();
    if (!glued && i + 1 == words.size()) continue;
    const std::string_view digits = glued ? word.substr(letters) : words[i + 1];
    const std::optional<int32_t> number = number_of(digits);
    if (number && is(marker)) return Counted{i, glued ? 1U : 2U, marker, digits, *number};
  }
  return std::nullopt;
}

}  // namespace tensordiff
