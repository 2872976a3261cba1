// Base64, as RFC 4648 has it, with padding.

#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tensordiff {

std::string base64(std::string_view bytes);

// The bytes of a text; nothing where a character, its length or its padding is wrong.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace tensordiff
