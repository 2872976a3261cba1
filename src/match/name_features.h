// What the names of one side say of where their tensors belong, as numbers that are quick to
// compare.

#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tensordiff {

// What a name says of where its tensor belongs, from the outside in.
enum Feature : std::size_t {
  kContainer,  // "h.0" of "h.0.attn.proj.weight": up to the last number before the module.
  kModule,     // "h.0.attn.proj"
  kKind,       // "h.#.attn.proj.weight"
  kNear,       // "proj.weight"
  kLeaf,       // "weight"
  kFeatures,
};
// Names as numbers of their features; 0 for none.
using Words = std::array<uint32_t, kFeatures>;

std::vector<Words> words_of(const std::vector<std::string>& names);

// Where the last part of a name begins, with its mark; 0 where it has one part.
std::size_t last_mark(std::string_view name, std::size_t before);

}  // namespace tensordiff
