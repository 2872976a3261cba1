// Which folders' settings the user trusts: tensordiff config trust.
//
// A folder may come from somebody else, and a setting may turn a difference into agreement. So what
// could do that counts only once the user trusted the file as it is: one that changed has to be
// trusted again. Kept in the user's state folder, a line for each file: the digest of what was
// trusted, the digest of the file's real path, and the path for people to read.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tensordiff {

// A file with settings, and the files that it names and that decide with it.
struct TrustedFile {
  std::string path;
  std::string_view content;
  std::vector<std::string> named;
};

bool is_trusted(const TrustedFile& file);

// Replaces what was said of this file before. Errors name the file that cannot be read or written.
Result<void> trust(const TrustedFile& file);
Result<void> distrust(const std::string& path);

}  // namespace tensordiff
