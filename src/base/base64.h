// Base64, as RFC 4648 has it, with padding.

#pragma once

#include <string>
#include <string_view>

namespace tensordiff {

std::string base64(std::string_view bytes);

}  // namespace tensordiff
