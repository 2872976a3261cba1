// Tensors by what their names mean in the common conventions.

#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "match/canonical.h"

namespace tensordiff {

// A meaning that several tensors have is no key; two of them are kept to be told. An encoder and a
// decoder have the same parts, which are told apart by the name of the tower where there are both.
struct Meanings {
  std::map<CanonicalName, std::size_t> tensors;
  std::vector<std::pair<std::size_t, std::size_t>> ambiguous;  // Two for each meaning.
  bool norms_behind = false;     // Only behind attention and mlp: others count them as before.
  bool after_attention = false;  // A "post_attention_layernorm", which may stand before the mlp.
};

// Roles of "mlp.fc" and "mlp.gate" where a side has both: one is the gate, the other is up.
inline constexpr std::string_view kHalfFc = "half.fc", kHalfGate = "half.gate";

Meanings meanings_of(const std::vector<std::string>& names, const std::vector<std::size_t>& free);

}  // namespace tensordiff
