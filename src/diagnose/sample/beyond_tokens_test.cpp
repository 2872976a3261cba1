#include "diagnose/sample/beyond_tokens.h"

#include <gtest/gtest.h>

#include "compare/beyond.h"
#include "diagnose/toys/toy_values.h"

namespace tensordiff {
namespace {

// [heads, tokens, dim]: a token has its features of all heads side by side.
TEST(BeyondTokens, TellsElementsByTokenAndFeature) {
  const uint64_t heads = 3, tokens = 700, dim = 8;
  tensordiff::Run run;
  run.extent.tokens = tokens;
  run.sites.resize(1);
  Site& site = run.sites[0];
  const Values a = random_values(heads * tokens * dim, 2);
  Values b = a;
  b[(2 * tokens + 650) * dim + 5] += 1;  // Head 2, token 650.
  site.views.a = view_of({heads, tokens, dim}, a, DType::f32);
  site.views.b = view_of({heads, tokens, dim}, b, DType::f32);
  Beyond beyond;
  site.comparison = compare(site.views, {}, beyond).value();
  site.beyond = std::make_shared<const Beyond>(std::move(beyond));
  const Case it(run, site, read_matrix(site.views.a, run.extent).value(),
                read_matrix(site.views.b, run.extent).value());
  const std::optional<BeyondTokens> found = beyond_tokens(it);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->tokens, tokens);
  EXPECT_EQ(found->features, heads * dim);
  ASSERT_EQ(found->elements.size(), 1U);
  EXPECT_EQ(found->elements[0].row, 650U);
  EXPECT_EQ(found->elements[0].feature, 2 * dim + 5);
  EXPECT_EQ(found->rows(), std::vector<uint64_t>{650});
  EXPECT_EQ(found->outside, 0);
}

}  // namespace
}  // namespace tensordiff
