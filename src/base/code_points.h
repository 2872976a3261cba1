// Characters one by one, and which of them no output may hold as they are.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tensordiff {

inline constexpr uint32_t kBrokenUtf8 = 0xffffffff;

// The character at `at`, and how many bytes it takes. A broken byte is kBrokenUtf8 and one long.
uint32_t decode_utf8(std::string_view text, std::size_t at, std::size_t& length);

// Whether a character moves the cursor, changes the direction of writing, cannot be seen, or is
// none at all (U+FFFE), which XML and YAML refuse.
bool is_harmful(uint32_t point);

}  // namespace tensordiff
