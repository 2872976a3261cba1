#include "naming/lexicon.h"

#include <algorithm>

#include "base/text.h"

namespace tensordiff {
namespace {

std::string replaced(std::string text, char mark, std::string_view with) {
  for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += with.size())
    text.replace(at, 1, with);
  return text;
}

// The role that stands `places` behind another: key is one behind query.
Role behind(Role role, std::size_t places) {
  return static_cast<Role>(static_cast<std::size_t>(role) + places);
}
static_assert(static_cast<int>(Role::value) - static_cast<int>(Role::query) == 2);
static_assert(static_cast<int>(Role::value_norm) - static_cast<int>(Role::query_norm) == 2);
static_assert(static_cast<int>(Role::value_final) - static_cast<int>(Role::query_final) == 2);
static_assert(static_cast<int>(Role::cross_value) - static_cast<int>(Role::cross_query) == 2);

void add_words(std::string_view list, std::unordered_set<std::string_view>& words) {
  for (const std::string_view word : split(list, ' '))
    if (!word.empty()) words.insert(word);
}

}  // namespace

const Lexicon& Lexicon::all() {
  static const Lexicon kAll;
  return kAll;
}

Lexicon::Lexicon() {
  for (const Convention* convention : conventions::kAll) {
    add(convention->in_layer, in_layer_);
    add(convention->outside, outside_);
    add(convention->endings, endings_);
    add(convention->stages, stages_);
    add_words(convention->layer_words, layer_words_);
    add_words(convention->wrappers, wrappers_);
  }
  for (const auto& [words, role] : endings_) {
    const auto dots = static_cast<std::size_t>(std::ranges::count(words, '.'));
    ending_words_max_ = std::max(ending_words_max_, dots + 1);
  }
}

void Lexicon::add(std::span<const RoleRow> rows, Table& table) {
  constexpr std::pair<std::string_view, std::string_view> kLetters[] = {
      {"q", "query"}, {"k", "key"}, {"v", "value"}};
  for (const RoleRow& row : rows) {
    for (const std::string_view spelling : split(row.spellings, ' ')) {
      const std::string text(spelling == "-" ? std::string_view() : spelling);
      if (text.find_first_of("@#") == std::string::npos) {
        table.emplace(text, row.role);
        continue;
      }
      for (std::size_t i = 0; i < std::size(kLetters); ++i)
        table.emplace(replaced(replaced(text, '@', kLetters[i].first), '#', kLetters[i].second),
                      behind(row.role, i));
    }
  }
}

Spelling Lexicon::find(const Table& table, std::string_view words) {
  const auto row = table.find(words);
  return row == table.end() ? Spelling{} : Spelling{row->second, row->first, true};
}

}  // namespace tensordiff
