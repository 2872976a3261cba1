#include "base/suggest.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "base/text.h"

namespace tensordiff {
namespace {

// Longer ones are nobody's slip, and would only cost time.
constexpr std::size_t kLengthMax = 64;

std::string plain(std::string_view word) {
  std::string out = lower(word);
  std::ranges::replace(out, '-', '_');
  return out;
}

// How many letters have to be put in, taken out, replaced or exchanged with the next one to make
// one of the other.
std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), row(b.size() + 1), next(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    next[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = row[j] + (a[i] == b[j] ? 0 : 1);
      next[j + 1] = std::min({replaced, next[j] + 1, row[j + 1] + 1});
      if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j])
        next[j + 1] = std::min(next[j + 1], before[j - 1] + 1);
    }
    std::swap(before, row);
    std::swap(row, next);
  }
  return row[b.size()];
}

}  // namespace

std::string_view nearest_word(std::string_view word, std::span<const std::string_view> words) {
  if (word.size() > kLengthMax) return "";
  const std::string meant = plain(word);
  std::string_view best;
  // A third of the letters may be wrong; more is another word.
  std::size_t fewest = std::max<std::size_t>(1, meant.size() / 3) + 1;
  for (const std::string_view candidate : words) {
    const std::size_t edits = edits_between(meant, plain(candidate));
    if (edits >= fewest) continue;
    fewest = edits;
    best = candidate;
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> words) {
  const std::string_view meant = nearest_word(word, words);
  if (!meant.empty()) return fmt::format("; did you mean '{}'?", meant);
  return words.empty() ? "" : fmt::format("; known are {}", fmt::join(words, ", "));
}

}  // namespace tensordiff
