// Digests on the command line: tensordiff A.digest B.

#pragma once

#include <string>
#include <vector>

#include "cli/settings.h"

namespace tensordiff {

// Whether the file is a digest that tensordiff wrote.
bool is_digest_file(const std::string& path);

// Holds a model against a digest. The exit status.
int run_against_digest(const Settings& settings, const std::vector<std::string>& inputs);

}  // namespace tensordiff
