#include "match/word_map.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>

#include "match/exchanged.h"

namespace tensordiff {
namespace {

// Words that tell names apart may be seen together by accident: a layer with a kind that only it
// has. What speaks for an exchange must outweigh that by so much.
constexpr int64_t kClearly = 5;
constexpr std::size_t kGroupMax = 1'000;  // Tensors of one size, of which each meets each.

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The parts of a name between marks; `mark` says which these are.
template <class IsMark>
std::vector<std::string_view> split_at(std::string_view text, const IsMark& mark) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = static_cast<std::size_t>(
        std::find_if(text.begin() + static_cast<std::ptrdiff_t>(at), text.end(), mark) -
        text.begin());
    if (end > at) parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

bool is_number(std::string_view text) { return std::ranges::all_of(text, is_digit); }

// A number counts what stands before it, and further numbers what that holds: "up.3.1" has the
// words "up", "up 3" and "up 3 1" without its first number, "up # 1".
std::vector<std::string> words_in(std::string_view name) {
  std::vector<std::string> words;
  std::string counted;
  for (const std::string_view part : split_at(name, [](char c) { return c == '.' || c == '/'; })) {
    if (is_number(part)) {
      words.push_back(counted + ' ' + std::string(part));
      counted += " #";
      continue;
    }
    counted = part;
    words.push_back("/" + std::string(part));
    std::string before;
    for (const std::string_view word :
         split_at(part, [](char c) { return c == '_' || c == '-' || c == ':'; })) {
      before = is_number(word) ? before + ' ' + std::string(word) : std::string(word);
      words.push_back(before);
    }
  }
  return words;
}

std::vector<uint32_t> without(const std::vector<uint32_t>& words,
                              const std::vector<uint32_t>& others) {
  std::vector<uint32_t> left;
  std::ranges::set_difference(words, others, std::back_inserter(left));
  return left;
}

}  // namespace

WordMap::WordMap(const MatchInput& input)
    : a_(words_of(with_first_numbers(names_of(input.a).names))),
      b_(words_of(with_first_numbers(names_of(input.b).names))) {}

uint32_t WordMap::number_of(std::string word) {
  const bool letters = word[0] != '/' && std::ranges::none_of(word, is_digit);
  const auto [found, fresh] =
      numbers_.emplace(std::move(word), static_cast<uint32_t>(numbers_.size()));
  if (fresh) spelled_.push_back(letters);
  return found->second;
}

std::vector<WordMap::Words> WordMap::words_of(const std::vector<std::string>& names) {
  std::vector<Words> result;
  result.reserve(names.size());
  for (const std::string& name : names) {
    Words words;
    for (std::string& word : words_in(name)) words.push_back(number_of(std::move(word)));
    std::ranges::sort(words);
    words.erase(std::ranges::unique(words).begin(), words.end());
    result.push_back(std::move(words));
  }
  return result;
}

void WordMap::add(const Pair& pair, int count) {
  if (pair.tied) return;
  for (const uint32_t a : a_[pair.a])
    for (const uint32_t b : b_[pair.b]) both_[uint64_t{a} << 32 | b] += count;
}

// How often the two of these words that go together most often do. A word that both sides spell
// alike stands for itself once.
int64_t WordMap::most(const Words& a, const Words& b) const {
  int64_t best = 0;
  for (const uint32_t of_a : a)
    for (const uint32_t of_b : b) {
      const auto found = both_.find(uint64_t{of_a} << 32 | of_b);
      const int64_t alike = of_a == of_b && spelled_[of_a];
      best = std::max(best, (found == both_.end() ? 0 : found->second) + alike);
    }
  return best;
}

bool WordMap::speak_for_exchange(const Pair& x, const Pair& y) const {
  const Words a_of_x = without(a_[x.a], a_[y.a]), b_of_y = without(b_[y.b], b_[x.b]);
  const int64_t of_x = most(a_of_x, b_of_y);
  if (of_x == 0) return false;
  const Words a_of_y = without(a_[y.a], a_[x.a]), b_of_x = without(b_[x.b], b_[y.b]);
  const int64_t of_y = most(a_of_y, b_of_x);
  if (of_y == 0) return false;
  // The pairs themselves are no witnesses: each counts once where its own words meet.
  const int64_t as_they_are = std::max<int64_t>(0, most(a_of_x, b_of_x) - 1) +
                              std::max<int64_t>(0, most(a_of_y, b_of_y) - 1);
  return 2 * std::min(of_x, of_y) >= kClearly * as_they_are;
}

bool is_found_by_value(const Pair& pair) {
  return !pair.tied &&
         (pair.matched_by == &matchers::value || pair.matched_by == &matchers::fused_value);
}

std::size_t exchange_by_words(const MatchInput& input, std::vector<Pair>& pairs) {
  // What may change partners: on the side that is whole, where the other is cut.
  std::map<std::tuple<uint64_t, bool, bool>, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const Pair& pair = pairs[i];
    const bool cut_a = pair.section_a.has_value(), cut_b = pair.section_b.has_value();
    if (!is_found_by_value(pair) || (cut_a && cut_b)) continue;
    const Tensor& whole = cut_a ? input.b.tensors[pair.b] : input.a.tensors[pair.a];
    groups[{whole.elements(), cut_a, cut_b}].push_back(i);
  }
  std::erase_if(groups, [](const auto& group) {
    return group.second.size() < 2 || group.second.size() > kGroupMax;
  });
  if (groups.empty()) return 0;
  WordMap words(input);
  for (const Pair& pair : pairs) words.add(pair, 1);
  std::size_t changed = 0;
  for (const auto& [key, group] : groups)
    for (std::size_t i = 0; i < group.size(); ++i)
      for (std::size_t j = i + 1; j < group.size(); ++j) {
        Pair &x = pairs[group[i]], &y = pairs[group[j]];
        if (!words.speak_for_exchange(x, y)) continue;
        for (const Pair* each : {&x, &y}) words.add(*each, -1);
        x.section_b ? std::swap(x.a, y.a) : std::swap(x.b, y.b);
        for (const Pair* each : {&x, &y}) words.add(*each, 1);
        changed += 2;
      }
  return changed;
}

}  // namespace tensordiff
