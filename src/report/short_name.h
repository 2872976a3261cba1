// Names of tensors where there is little room.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tensordiff {

// A tensor's name of at most `width` columns: all numbers, such as the layer, and the last part
// stay as long as they fit. "model.layers.17.self_attn.q_proj.weight" becomes
// "…layers.17.…q_proj.weight". Of a pair, "A → B", B leaves out a layer that is the same as A's.
std::string shorten_name(std::string_view name, std::size_t width);

// The fewest columns in which a name keeps its numbers and its last part.
std::size_t least_columns(std::string_view name);

}  // namespace tensordiff
