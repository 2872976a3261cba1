// Which version and commit this is. Defined in a source that the build writes
// (tools/package/build_info.py), so that a new commit compiles one file again and not all.

#pragma once

namespace tensordiff {

extern const char* const kVersion;  // "0.2.0"
extern const char* const kCommit;   // "b73a295c01d2", "…-dirty", or "unknown" outside of git.

}  // namespace tensordiff
