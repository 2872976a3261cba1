// compare --part: a share of a comparison, which merge puts together.

#pragma once

#include <string>
#include <vector>

#include "cli/settings.h"
#include "parts/partial.h"

namespace tensordiff {

// "part-03-of-16.tdpart": names of one run stand in the order of their parts.
std::string part_file_name(const PartNumber& number);

// The options that say what is compared and how it is judged, for the merge to use again.
std::vector<GivenOption> options_of_part(const Settings& settings);

// Applies the options that a part was made with. It may come from anybody: it never runs a program
// or writes a file.
Result<void> apply_part_options(const std::vector<GivenOption>& options, Settings& settings);

// The exit status.
int run_part(const Settings& settings, const std::vector<std::string>& inputs);

}  // namespace tensordiff
