// What else is wrong where some tokens are no numbers.

#include "diagnose/sample/finite_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "diagnose/toys/toy_mistakes.h"
#include "diagnose/verdict/judge.h"

namespace tensordiff {
namespace {

constexpr uint64_t kLost = 10;

// A token that is lost in layer 0, and with `second` a factor on the values of layer 2.
std::vector<Site> sites_with(uint64_t lost, bool second) {
  const ToyShape shape;
  ToyModel model(shape, 4);
  ToyMistakes one, two;
  one.layer = 0, two.layer = 2;
  one.after["post_mlp"] =
      each(shape.width(), [=](double x, uint64_t row, auto) { return row == lost ? NAN : x; });
  if (second)
    two.after["value"] =
        each(shape.kv_heads * shape.dim, [](double x, auto, auto) { return 3 * x; });
  return sites_of(model.run(DType::f32, false, {}), DType::f32,
                  model.run(DType::f32, true, {one, two}), DType::f32);
}

TEST(FiniteTokens, TellOfAMistakeBehindThoseThatAreNoNumbers) {
  const std::vector<Site> sites = sites_with(kLost, true);
  const Insight insight = diagnose(sites, {});
  SCOPED_TRACE(describe(insight, sites));
  ASSERT_TRUE(insight.first);
  EXPECT_EQ(sites[insight.first->pair].a.name, "0_post_mlp");
  ASSERT_EQ(insight.next.size(), 1U);
  EXPECT_EQ(sites[insight.next[0].pair].a.name, "2_value");
  EXPECT_NE(insight.next[0].explanation.find("10 tokens before"), std::string::npos);
  const auto found = std::ranges::find(insight.findings, insight.next[0].pair, &Finding::pair);
  ASSERT_NE(found, insight.findings.end());
  EXPECT_EQ(found->code, "scale");
}

TEST(FiniteTokens, TellOfNothingElseWhereNothingIs) {
  const std::vector<Site> sites = sites_with(kLost, false);
  const Insight insight = diagnose(sites, {});
  SCOPED_TRACE(describe(insight, sites));
  ASSERT_TRUE(insight.first);
  EXPECT_EQ(sites[insight.first->pair].a.name, "0_post_mlp");
  EXPECT_TRUE(insight.next.empty());
}

TEST(FiniteTokens, AreThoseBeforeTheFirstThatIsLost) {
  for (const uint64_t lost : {uint64_t{3}, kLost}) {
    tensordiff::Run run = make_run(sites_with(lost, false), {});
    judge(run);
    const std::optional<FiniteTokens> part = tokens_before_nonfinite(run);
    EXPECT_EQ(part.has_value(), lost == kLost) << "too few tell nothing";
    if (!part) continue;
    EXPECT_EQ(part->tokens, kLost);
    EXPECT_EQ(part->sites.size(), run.sites.size());
    for (const Site& site : part->sites)
      EXPECT_EQ(site.comparison.diff.nonfinite_mismatch, 0U) << site.a.name;
  }
  ToyModel model({}, 4);
  tensordiff::Run clean = make_run(sites_of(model.run(DType::f32, false, {}), DType::f32,
                                            model.run(DType::f32, true, {}), DType::f32),
                                   {});
  judge(clean);
  EXPECT_FALSE(tokens_before_nonfinite(clean));
}

}  // namespace
}  // namespace tensordiff
