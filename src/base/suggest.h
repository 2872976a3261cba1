// The word that was meant, for errors about one that nobody knows.

#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tensordiff {

// The word most like `word`, where one is near enough to be meant; "" for none. Case does not
// count, and '-' is '_'.
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> words);

// "; did you mean 'rel_l2'?", or "; known are cosine, pcc" where none is near.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> words);

}  // namespace tensordiff
