// Tells git that tensordiff compares tensor files: a diff driver, a text conversion, a difftool.

#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace tensordiff {

// Sets git's configuration and attributes, of this repository or of all the user's. Says what was
// done, a line each.
Result<std::string> git_install(bool global);
Result<std::string> git_uninstall(bool global);

// The text of an attributes file with our part in it, or without it; all else stays as it is.
std::string with_attributes(std::string_view text);
std::string without_attributes(std::string_view text);

}  // namespace tensordiff
