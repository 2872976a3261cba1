#include "base/pattern.h"

#include <gtest/gtest.h>

namespace tensordiff {
namespace {

TEST(Pattern, IsFoundAnywhere) {
  const Pattern pattern = Pattern::make("mlp\\.[0-9]+$").value();
  EXPECT_TRUE(pattern.found_in("layers.mlp.12"));
  EXPECT_FALSE(pattern.found_in("mlp.12.up"));
  EXPECT_TRUE(Pattern::make("\xff.").value().found_in("a\xff\xfe"));
}

TEST(Pattern, GivesItsGroups) {
  const Pattern pattern = Pattern::make("(a)|(b+)").value();
  const auto groups = pattern.search("xbb").value();
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[0], "bb");
  EXPECT_EQ(groups[1], std::nullopt);
  EXPECT_EQ(groups[2], "bb");
  EXPECT_FALSE(pattern.search("x"));
}

// A backtracking engine would need 2^100,000 steps, and as many calls within each other.
TEST(Pattern, TakesLinearTime) {
  const std::string name = std::string(100'000, 'a') + "!";
  EXPECT_FALSE(Pattern::make("^(a+)+$").value().found_in(name));
  EXPECT_TRUE(Pattern::make("(a|aa)+!").value().found_in(name));
}

TEST(Pattern, SaysWhatIsWrong) {
  EXPECT_EQ(Pattern::make("a(").error().message(),
            "'a(' is not a regular expression: missing ): a(");
  for (const char* pattern : {"(?=x)", "(?!x)", "(?<=x)a", "(a)\\1"})
    EXPECT_TRUE(Pattern::make(pattern).error().message().ends_with(
        "(there are no lookaround and no backreferences)"))
        << Pattern::make(pattern).error().message();
  EXPECT_FALSE(Pattern::make("((((x{100}){100}){100}){100})").ok());
}

}  // namespace
}  // namespace tensordiff
