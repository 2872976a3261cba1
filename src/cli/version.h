// What tensordiff --version prints: the version, the commit, and what the program was built with.

#pragma once

#include <string>

namespace tensordiff {

std::string version_text();

}  // namespace tensordiff
