// Tensors by what their names mean, in whatever convention.

#pragma once

#include <compare>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tensor/place.h"

namespace tensordiff {

// The same for all names that mean the same: "transformer.h.3.attn.c_attn.weight" and
// "blk.3.attn_qkv.weight" are both fused qkv, weight, of layer 3.
struct Meaning {
  // "mlp.fc" and "mlp.gate" where a side has both: one is the gate, the other is up.
  enum class Half : uint8_t { none, fc, gate };

  int32_t layer = Place::kNone;
  int32_t expert = Place::kNone;
  Role role = Role::other;
  Half half = Half::none;  // Then the role is open.
  Param parameter = Param::none;
  Tower tower = Tower::none;  // Only where it is needed to tell two tensors apart.

  auto operator<=>(const Meaning&) const = default;
};

// A meaning that several tensors have is no key; two of them are kept to be told. An encoder and a
// decoder have the same parts, which are told apart by the name of the tower where there are both.
struct Meanings {
  std::map<Meaning, std::size_t> tensors;
  std::vector<std::pair<std::size_t, std::size_t>> ambiguous;  // Two for each meaning.
  bool norms_behind = false;     // Only behind attention and MLP: others count them as before.
  bool after_attention = false;  // A "post_attention_layernorm", which may stand before the MLP.
};

// Whether two results of modules may be the same by what their names mean. What attention and the
// MLP give is what their last projections give; which norm is meant differs between conventions.
bool may_mean_the_same(const Place& a, const Place& b);

// Whether the same name means two things: "mlp.act_fn" is act(gate) in one program and
// act(gate) * up in another.
bool is_other_activation(const Place& a, const Place& b);

// The roles that hold the same as this one in some dumps: "self_attn" and "self_attn.o_proj".
Role twin_of(Role role);

// Of the tensors that are free, by the places of all. Where two names that differ only in their
// numbers mean the same ("stages.0.layers.1", "stages.1.layers.1"), the layer alone does not tell
// tensors of that kind apart, and none of them has a meaning.
Meanings meanings_of(std::span<const Place> places, const std::vector<std::size_t>& free,
                     std::span<const std::string> names = {});

}  // namespace tensordiff
