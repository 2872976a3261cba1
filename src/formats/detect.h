// Which format a file is of, and which files a folder holds.

#pragma once

#include "formats/archive.h"
#include "formats/format.h"

namespace tensordiff {

// By content. The error says what else it looks like.
Result<const Format*> detect(const Bytes& file);
Result<const Format*> format_named(std::string_view name);

// All files in a folder and below. Mapped when somebody looks into one.
Result<Archive> walk_folder(const std::string& folder, const OpenOptions& options);

}  // namespace tensordiff
