#include "serve/axis_names.h"

#include <gtest/gtest.h>

namespace tensordiff::serve {
namespace {

PairRow row(std::string stage, Shape shape, bool judged = true) {
  PairRow made;
  made.stage = std::move(stage);
  made.shape = std::move(shape);
  if (judged) made.verdict = Verdict::match;
  return made;
}

TEST(AxisNames, TokensAreWhatAllTensorsOfARunHave) {
  Report report;
  report.pairs = {row("query", {8, 20, 16}), row("post_attn", {20, 128}),
                  row("post_mlp", {1, 20, 128}), row("probabilities", {8, 20, 20})};
  using Names = std::vector<std::string>;
  EXPECT_EQ(axis_names(report, report.pairs[0]), (Names{"head", "token", "channel"}));
  EXPECT_EQ(axis_names(report, report.pairs[1]), (Names{"token", "hidden"}));
  EXPECT_EQ(axis_names(report, report.pairs[2]), (Names{"", "token", "hidden"}));
  EXPECT_EQ(axis_names(report, report.pairs[3]).back(), "key token");
}

TEST(AxisNames, NothingIsKnownOfCheckpoints) {
  Report report;
  report.pairs = {row("", {20, 128}, false), row("", {20, 64}, false)};
  EXPECT_TRUE(axis_names(report, report.pairs[0]).empty());
}

}  // namespace
}  // namespace tensordiff::serve
