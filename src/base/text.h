// Text for people: names out of files made harmless, numbers made short.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tensordiff {

// A name from a file, fit for a terminal or a log: control and bidirectional characters and broken
// UTF-8 become escapes like \x1b or \u202e, and what is longer than `length_max` ends in an
// ellipsis.
std::string printable(std::string_view name, std::size_t length_max = 200);

// Valid UTF-8 as it is; each broken byte becomes U+FFFD.
std::string valid_utf8(std::string_view text);
bool is_utf8(std::string_view text);
void append_utf8(uint32_t code_point, std::string& out);

std::string human_bytes(uint64_t bytes);                     // 1.5 GiB
std::string human_count(uint64_t count);                     // 12,345,678
std::string human_number(double value);                      // 3.05e-07, 0.125, nan
std::string shape_text(const std::vector<uint64_t>& shape);  // [2, 3]

std::string lower(std::string_view text);
std::vector<std::string_view> split(std::string_view text, char separator);
bool all_digits(std::string_view text);

}  // namespace tensordiff
