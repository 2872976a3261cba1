// Where output goes and what can be shown there.

#pragma once

#include <cstddef>
#include <string_view>

#include "base/result.h"
#include "cli/settings.h"

namespace tensordiff {

// Puts something in the place of standard streams that are closed. A file that is opened later
// would else become one, and what is meant for people would be written into it.
void open_standard_streams();

// Says something on stderr. Where that is closed or full, nobody listens, and nothing happens.
void say(std::string_view text);

// COLUMNS, else the width of the terminal, at least 60; in a pipe as wide as any line.
std::size_t output_width();

// Colours are for terminals, unless the user says otherwise; NO_COLOR speaks where --color does
// not.
bool wants_color(const Settings& settings);

// Writes to --out or stdout. A disk that is full or a file that cannot be made is an error.
Result<void> deliver(std::string_view text, const Settings& settings);

}  // namespace tensordiff
