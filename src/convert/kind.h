// What pairs have in common that a converter treats alike, by their names.

#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "convert/form.h"
#include "match/matcher.h"
#include "naming/affixes.h"
#include "naming/numbered_name.h"

namespace tensordiff {

// What the names of a pair have in common with the same tensor of other layers.
struct PairKind {
  std::string a, b;  // With '#' for numbers.
  std::string part;  // Which part of a fused tensor.
  Merge merge;       // What it could be merged with.

  auto operator<=>(const PairKind&) const = default;
};

inline PairKind kind_of(const Catalog& a, const Catalog& b, const Pair& pair, const Merge& merge) {
  PairKind kind{numbered_name(a.tensors[pair.a].name).pattern,
            numbered_name(b.tensors[pair.b].name).pattern, "", merge};
  for (const std::optional<Section>* section : {&pair.section_a, &pair.section_b})
    if (*section) kind.part += numbered_name((*section)->label).pattern;
  return kind;
}

// TensorFlow numbers the outputs of an operation: "dense/kernel:0".
inline std::string_view last_word(std::string_view name) {
  if (name.ends_with(":0") || name.ends_with(":#")) name.remove_suffix(2);
  return name.substr(name.find_last_of("./:") + 1);
}

// Kinds that a converter turns with one line of code: linear weights under one name.
using Leaves = std::pair<std::string, std::string>;

inline Leaves leaves_of(const PairKind& kind) {
  return {std::string(last_word(kind.a)), std::string(last_word(kind.b))};
}

// Tables are looked up, not multiplied: converters that turn matrices leave them as they are.
inline bool is_table(Role role) {
  return role == Role::embedding || role == Role::positions || role == Role::segments ||
         role == Role::class_token || role == Role::relative_bias;
}

// q and k share the order of their rows; every other tensor is a class of its own.
inline bool has_rope(Role role) { return role == Role::query || role == Role::key; }

// What a program multiplies with by itself ("x @ projection") has its inputs first, the weight of a
// linear module its outputs.
inline bool is_bare(const Tensor& a, const Tensor& b) {
  return names_parameter(a.name) != names_parameter(b.name);
}

// Tensors that a converter puts through one function: the weights of all norms.
struct FunctionClass {
  Leaves leaves;
  bool vector = false;

  auto operator<=>(const FunctionClass&) const = default;
};

// Tensors of which one line of a converter does the same: of one last name and as many axes.
struct LeafClass {
  Leaves leaves;
  std::size_t rank_a = 0, rank_b = 0;

  auto operator<=>(const LeafClass&) const = default;
};

}  // namespace tensordiff
