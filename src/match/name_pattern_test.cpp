#include "match/name_pattern.h"

#include <gtest/gtest.h>

#include "match/matcher.h"

namespace tensordiff {
namespace {

// "layer/stage", with "-" for no layer; "none" where the pattern is not found.
std::string place(const std::string& regex, std::string_view name) {
  const Result<NamePattern> pattern = NamePattern::make(regex);
  EXPECT_TRUE(pattern.ok()) << (pattern.ok() ? "" : pattern.error().message());
  const std::optional<LayerStage> found = pattern.value().place(name);
  if (!found) return "none";
  return (found->layer ? std::to_string(*found->layer) : "-") + "/" + found->stage;
}

TEST(NamePattern, FindsNamedGroups) {
  EXPECT_EQ(place("L(?<layer>[0-9]+)-(?<stage>.+)", "run/L12-query"), "12/query");
  EXPECT_EQ(place("L(?P<layer>[0-9]+)-(?P<stage>.+)", "run/L12-query"), "12/query");
  EXPECT_EQ(place("(?<stage>\\w+)@(?<layer>\\d+)", "query@3"), "3/query");
  EXPECT_EQ(place("^x/(?<key>.*)\\.bin$", "x/foo.bin"), "-/foo");
  EXPECT_EQ(place("(?<layer>\\d+)(?<key>.*)", "7foo"), "7/foo");
  EXPECT_EQ(place("(?<key>.*)\\.bin$", "foo.npy"), "none");
}

TEST(NamePattern, CountsTheGroupsThatHaveNoName) {
  EXPECT_EQ(place("(a|b)(?:c)([(?<]x)?(?<layer>\\d+)\\((?<stage>.)", "bc5(q"), "5/q");
  EXPECT_EQ(place("a(?i:B)(?<layer>\\d)(?<stage>.)", "ab1q"), "1/q");
  EXPECT_EQ(place("l(?<layer>\\d)(?<stage>.)|(?<stage>.)l(?<layer>\\d)", "ql4"), "4/q");
}

TEST(NamePattern, TakesALayerThatIsANumberOnly) {
  EXPECT_EQ(place("(?<layer>.)_(?<stage>.+)", "x_query"), "none");
  EXPECT_EQ(place("(?<layer>[0-9]+)_(?<stage>.+)", "99999999999999999999_q"), "none");
  EXPECT_NE(place("(?<stage>x+)", std::string(10'000, 'x')), "none");  // Long ones are searched.
}

TEST(NamePattern, SaysWhatIsWrong) {
  EXPECT_EQ(NamePattern::make("(?<layer>\\d+)").error().message(),
            "'(?<layer>\\d+)' has no group called stage or key: (?<layer>[0-9]+)_(?<stage>.+)");
  EXPECT_EQ(NamePattern::make("(?<step>.)").error().message(),
            "a group is called 'step'; there are layer, stage and key");
  EXPECT_TRUE(NamePattern::make("(?<stage>[)")
                  .error()
                  .message()
                  .starts_with("'(?<stage>[)' is not a regular expression: "));
  EXPECT_FALSE(NamePattern::make("(?<stage").ok());
  EXPECT_FALSE(NamePattern::make("a(?=1)(?<layer>\\d)(?<stage>.)").ok());
}

}  // namespace
}  // namespace tensordiff
