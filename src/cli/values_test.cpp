#include "cli/values.h"

#include <gtest/gtest.h>

namespace tensordiff {
namespace {

TEST(Values, ReadSizesWithSuffixes) {
  const std::pair<std::string_view, uint64_t> cases[] = {
      {"0", 0},
      {"1048576", 1048576},
      {"500MB", 500000000},
      {"2GiB", 2147483648},
      {"1.5 GiB", 1610612736},
      {"64k", 64000},
      {"64KiB", 65536},
      {"7B", 7},
  };
  for (const auto& [text, bytes] : cases) {
    const Result<uint64_t> size = parse_size(text);
    ASSERT_TRUE(size.ok()) << text;
    EXPECT_EQ(size.value(), bytes) << text;
  }
}

TEST(Values, RefuseWhatIsNoSize) {
  for (const std::string_view text : {"", "MB", "-1", "1XB", "1e30", "nan", "inf", "5 5"})
    EXPECT_FALSE(parse_size(text).ok()) << text;
}

TEST(Values, RefuseTolerancesThatMakeNoSense) {
  EXPECT_EQ(parse_tolerance("1e-3").value(), 1e-3);
  EXPECT_EQ(parse_tolerance("0").value(), 0);
  for (const std::string_view text : {"-1", "nan", "inf", "1x", ""})
    EXPECT_FALSE(parse_tolerance(text).ok()) << text;
}

TEST(Values, ListTheWordsThatAreAllowed) {
  constexpr std::string_view kWords[] = {"auto", "none"};
  EXPECT_EQ(parse_word("none", kWords).value(), 1U);
  EXPECT_EQ(parse_word("always", kWords).error().message(), "'always' is not one of auto, none");
}

}  // namespace
}  // namespace tensordiff
