// SHA-256, as FIPS 180-4 defines it: for pages that say which of their own scripts may run.

#pragma once

#include <string>
#include <string_view>

namespace tensordiff {

// The 32 bytes of the digest.
std::string sha256(std::string_view bytes);

}  // namespace tensordiff
