// Small pieces that the grammars of names have in common. Names are untrusted: numbers are checked.

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "dumps/layout.h"

namespace tensordiff {

// A number of at most nine digits and nothing else.
std::optional<int32_t> whole_number(std::string_view text);

// The number behind a prefix, and nothing else: ("rank12", "rank") gives 12.
std::optional<int32_t> number_after(std::string_view text, std::string_view prefix);

// Takes the part before a separator off the front; all of it where there is no separator.
std::string_view take_until(std::string_view& text, std::string_view separator);

// What integers under a name that ends so tell about the run: "forward_batch_info.input_ids".
RunFact fact_in(const Tensor& tensor, std::string_view path);

// "model.norm.1" is the second output of model.norm: cuts the number off where it is one.
std::optional<int32_t> take_output(std::string_view& path);

// The order of a step where nothing but its name tells it: layer by layer, and in a layer as a
// transformer computes. What stands before the layers has the layer -1.
int64_t order_by_role(int64_t layer, Role role);

// Whether a path is that of a module that computes or applies RoPE: "self_attn.rotary_emb".
bool is_rope_module(std::string_view path);

// Whether at least half of the names of a catalog, and three of them, are of a kind.
template <class Is>
bool mostly(const Catalog& catalog, const Is& is) {
  std::size_t count = 0;
  for (const Tensor& tensor : catalog.tensors) count += is(std::string_view(tensor.name));
  return count >= 3 && 2 * count >= catalog.tensors.size();
}

}  // namespace tensordiff
