#include "cli/git_setup.h"

#include <gtest/gtest.h>

namespace tensordiff {
namespace {

TEST(GitAttributes, AreAddedOnceAndTakenAwayWhole) {
  const std::string mine = "*.txt text\n";
  const std::string once = with_attributes(mine);
  EXPECT_TRUE(once.starts_with("*.txt text\n# tensordiff begin"));
  EXPECT_NE(once.find("*.safetensors diff=tensordiff\n"), std::string::npos);
  EXPECT_EQ(with_attributes(once), once);
  EXPECT_EQ(without_attributes(once), mine);
  EXPECT_EQ(without_attributes(once + "*.md text\n"), mine + "*.md text\n");
}

TEST(GitAttributes, EndALineThatHasNoEnd) {
  EXPECT_TRUE(with_attributes("*.txt text").starts_with("*.txt text\n#"));
  EXPECT_EQ(without_attributes("*.txt text"), "*.txt text");
}

}  // namespace
}  // namespace tensordiff
