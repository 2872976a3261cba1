#include "cli/version.h"

#include <gtest/gtest.h>

#include "base/build_info.h"

namespace tensordiff {
namespace {

TEST(Version, StartsWithTheVersionForScripts) {
  EXPECT_TRUE(version_text().starts_with(std::string("tensordiff ") + kVersion + "\n"));
}

TEST(Version, TellsTheCommitAndTheLibraries) {
  const std::string text = version_text();
  EXPECT_NE(text.find(std::string("\ncommit     ") + kCommit + "\n"), std::string::npos) << text;
  for (const char* library : {"HDF5 ", "SQLite ", "zlib ", "zstd "})
    EXPECT_NE(text.find(library), std::string::npos) << library;
}

}  // namespace
}  // namespace tensordiff
