// The arguments of options as values: sizes, counts, numbers, words out of a list.

#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "cli/settings.h"

namespace tensordiff {

// "1048576", "500MB" (decimal), "2GiB" (binary), "1.5 GiB".
Result<uint64_t> parse_size(std::string_view text);
Result<uint64_t> parse_count(std::string_view text);
// A finite number that is not negative.
Result<double> parse_tolerance(std::string_view text);
// Any number, also inf and nan.
Result<double> parse_number(std::string_view text);

// Where `word` is in `words`; the error lists them.
Result<std::size_t> parse_word(std::string_view word, std::span<const std::string_view> words);

// -o of the commands that know these two: text (the default) and json.
Result<void> set_text_or_json(Settings& settings, std::string_view name);

}  // namespace tensordiff
