// Logits alone: what softmax does not see, and what it does.

#include <gtest/gtest.h>

#include "compare/comparison.h"
#include "diagnose/diagnose.h"
#include "naming/naming.h"
#include "tensor/test_views.h"

namespace tensordiff {
namespace {

constexpr uint64_t kTokens = 12, kVocabulary = 32;

Insight told(const std::vector<float>& a, const std::vector<float>& b) {
  Site site;
  site.a.name = site.b.name = "logits";
  site.a.place = site.b.place = read_place("logits");
  site.views = {f32_view({kTokens, kVocabulary}, a), f32_view({kTokens, kVocabulary}, b), {}};
  site.comparison = compare(site.views, {}).value();
  return diagnose({std::move(site)}, {});
}

TEST(SoftmaxShift, AConstantForEachTokenIsNoMistake) {
  const std::vector<float> a = noise(kTokens * kVocabulary, 1);
  std::vector<float> b = a;
  for (std::size_t i = 0; i < b.size(); ++i) {
    const std::size_t token = i / kVocabulary;
    b[i] += static_cast<float>(token);
  }
  const Insight insight = told(a, b);
  ASSERT_EQ(insight.findings.size(), 1u);
  EXPECT_EQ(insight.findings[0].code, "softmax_shift");
  EXPECT_TRUE(insight.findings[0].convention);
  ASSERT_EQ(insight.outcomes.size(), 1u);
  EXPECT_EQ(insight.outcomes[0].verdict, Verdict::precision);
}

TEST(SoftmaxShift, ATemperatureIsAFactor) {
  const std::vector<float> a = noise(kTokens * kVocabulary, 1);
  std::vector<float> b = a;
  for (float& value : b) value /= 0.5F;
  const Insight insight = told(a, b);
  ASSERT_EQ(insight.findings.size(), 1u);
  EXPECT_EQ(insight.findings[0].code, "scale");
  EXPECT_NE(insight.findings[0].explanation.find("a temperature of 0.5"), std::string::npos);
}

TEST(SoftmaxShift, LogitsOneTokenLateAreATokenShift) {
  const std::vector<float> a = noise(kTokens * kVocabulary, 1);
  std::vector<float> b(a.size());
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = a[(i + a.size() - kVocabulary) % a.size()];
  const Insight insight = told(a, b);
  ASSERT_EQ(insight.findings.size(), 1u);
  EXPECT_EQ(insight.findings[0].code, "token_shift");
}

}  // namespace
}  // namespace tensordiff
