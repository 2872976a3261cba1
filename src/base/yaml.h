// YAML, the part of it that people write settings in: a strict reader.
//
// Maps and lists, by indentation or in one line of brackets; text, plain or in quotes; comments.
// Anchors, tags, text over several lines and a second document are refused by name rather than
// guessed at, as are tabs, duplicate keys and nesting deeper than kYamlDepthMax. Every node knows
// its line, so that whoever reads a file can say where it is wrong.

#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tensordiff {

inline constexpr int kYamlDepthMax = 32;

struct Yaml {
  struct Member;
  enum class Kind { null, text, list, map };

  Kind kind = Kind::null;
  std::size_t line = 0;          // From 1; 0 for a file without content.
  std::string text = {};         // As written, without quotes: "1e-3", "true".
  std::vector<Yaml> items = {};  // Of a list.
  std::vector<Member> members;   // Of a map, in the order of the file.

  static Result<Yaml> parse(std::string_view text);

  bool is_text() const { return kind == Kind::text; }
  bool is_list() const { return kind == Kind::list; }
  bool is_map() const { return kind == Kind::map; }

  // The node under a key; nullptr where there is none.
  const Yaml* find(std::string_view key) const;

  // "line 3: what is wrong".
  Error wrong(std::string_view what) const;
  // Refuses keys that are not among these, and what is no map at all.
  Result<void> only(std::span<const std::string_view> keys) const;
};

struct Yaml::Member {
  std::string key;
  std::size_t line = 0;
  Yaml value;
};

}  // namespace tensordiff
