// What a tensor's name means in the common conventions for naming the parts of a transformer.

#pragma once

#include <compare>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tensordiff {

// The same for all names that mean the same: "transformer.h.3.attn.c_attn.weight" and
// "blk.3.attn_qkv.weight" are both qkv, weight, of layer 3.
struct CanonicalName {
  static constexpr int64_t kNone = -1;
  static constexpr int64_t kAll = -2;     // All experts, or all layers, in one tensor.
  static constexpr int64_t kShared = -3;  // The expert that every token sees.

  int64_t layer = kNone;
  int64_t expert = kNone;
  std::string role;       // A row of the table in roles.cpp.
  std::string parameter;  // "weight", "bias"; "" for what a module puts out.
  std::string tower;      // Left "" by canonical_name(): see meaning.h.

  auto operator<=>(const CanonicalName&) const = default;
};

// A name with the spelling in roles.cpp that gave its role, which may mean something else where it
// stands beside others: see meaning.h.
struct ReadName {
  CanonicalName meaning;
  std::string_view spelling;
};

// Nothing where the name follows no convention that we know.
std::optional<ReadName> read_name(std::string_view name);

// The meaning of a name alone, of one layer or of none.
std::optional<CanonicalName> canonical_name(std::string_view name);

// "encoder", "decoder" or "vision", where a name says which tower of a model it belongs to.
std::string_view tower_of(std::string_view name);

// The words that the number of a layer follows: "layers", "blk".
std::span<const std::string_view> layer_words();

}  // namespace tensordiff
