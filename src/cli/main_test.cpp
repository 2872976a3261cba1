// main.cpp, as the program that it is.

#include <gtest/gtest.h>

#include "cli/subprocess.h"
#include "cli/version.h"

namespace tensordiff {
namespace {

Finished program(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), TENSORDIFF_PROGRAM);
  Result<Finished> ran = run_program(arguments);
  return ran.ok() ? ran.value() : Finished{-1, ""};
}

TEST(Main, PicksTheCommand) {
  EXPECT_EQ(program({"--version"}).output, version_text());
  EXPECT_TRUE(program({"--help"}).output.starts_with("usage: tensordiff A B"));
  EXPECT_TRUE(program({"show", "--help"}).output.starts_with("usage: tensordiff show"));
  EXPECT_EQ(program({}).exit, 2);
  EXPECT_EQ(program({"nowhere.a", "nowhere.b"}).exit, 2);  // Anything else is compared.
}

TEST(Main, TakesCheckAsAnOption) {
  const std::string file = TENSORDIFF_SOURCE_DIR "/tests/data/parity/reference.zip";
  EXPECT_EQ(program({file, "--check"}).output, program({"check", file}).output);
}

}  // namespace
}  // namespace tensordiff
