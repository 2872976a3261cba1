// What all conventions know, put together: which spelling stands for which role, which words a
// layer is called by.

#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "naming/convention.h"

namespace tensordiff {

// A role and the spelling that gave it, which lasts as long as the program.
struct Spelling {
  Role role = Role::other;
  std::string_view text = {};
  bool found = false;
};

class Lexicon {
 public:
  // The one of all conventions.
  static const Lexicon& all();

  // Words joined by dots.
  Spelling in_layer(std::string_view words) const { return find(in_layer_, words); }
  Spelling outside(std::string_view words) const { return find(outside_, words); }
  Spelling ending(std::string_view words) const { return find(endings_, words); }
  Spelling stage(std::string_view words) const { return find(stages_, words); }
  std::size_t ending_words_max() const { return ending_words_max_; }

  bool is_layer_word(std::string_view word) const { return layer_words_.contains(word); }
  bool is_wrapper(std::string_view word) const { return wrappers_.contains(word); }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };
  using Table = std::unordered_map<std::string, Role, Hash, std::equal_to<>>;

  Lexicon();
  static void add(std::span<const RoleRow> rows, Table& table);
  static Spelling find(const Table& table, std::string_view words);

  Table in_layer_, outside_, endings_, stages_;
  std::unordered_set<std::string_view> layer_words_, wrappers_;
  std::size_t ending_words_max_ = 0;
};

}  // namespace tensordiff
