// What the outputs of modules are, where a module gives several.

#pragma once

#include <string>
#include <vector>

#include "dumps/layout.h"

namespace tensordiff {

// One result of one pass on one rank.
struct Item {
  std::string name;
  std::string known_as = {};         // What it is paired by; empty: its name.
  std::vector<std::size_t> tensors;  // Of the catalog; two or more are added up.
  int32_t pass = 0;
  int32_t rank = Place::kNone;
  int64_t order = 0;
  std::optional<AxisIndex> part = std::nullopt;  // Only this of the tensor.
};

// Inference engines carry the residual stream beside the hidden states:
//   - a layer gives (hidden, residual), whose sum is what others call its output;
//   - a norm gives (normed, stream), and the stream is that before the layer, before the MLP or
//     behind the last layer;
//   - rotary_emb gives query and key behind RoPE; all layers may share one such module, and a hook
//     then writes the values of the last layer under the name of each.
// Of any other module the first output is the one it is known by.
std::vector<Item> items_of(const Catalog& catalog, const Dump& dump);

}  // namespace tensordiff
