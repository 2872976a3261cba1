// How far the first token is off.

#include "diagnose/sample/first_token.h"

#include <gtest/gtest.h>

#include "tensor/test_views.h"

namespace tensordiff {
namespace {

Site site(const Shape& shape, const std::vector<float>& a, const std::vector<float>& b) {
  Site made;
  made.views.a = f32_view(shape, a);
  made.views.b = f32_view(shape, b);
  return made;
}

TEST(FirstToken, IsTheFirstRow) {
  EXPECT_EQ(first_token_error(site({1, 2, 2}, {3, 4, 1, 1}, {3, 4, 9, 9})), 0);
  EXPECT_EQ(first_token_error(site({2, 2}, {3, 4, 1, 1}, {3, 9, 1, 1})), 1);
}

TEST(FirstToken, IsNotToldWhereThereIsNoOther) {
  EXPECT_TRUE(std::isinf(first_token_error(site({1, 2}, {3, 4}, {3, 4}))));
  EXPECT_TRUE(std::isinf(first_token_error(site({2}, {3, 4}, {3, 4}))));
  EXPECT_TRUE(std::isinf(first_token_error(site({2, 1}, {0, 4}, {0, 4}))));
  EXPECT_TRUE(std::isinf(first_token_error(site({2, 1}, {1, 4}, {NAN, 4}))));
}

// The first token of each sequence shows nothing of what positions do.
TEST(FirstToken, TheBestOfOthersTell) {
  const auto of = [](const std::vector<float>& right) {
    std::vector<float> a, b;
    for (const float each : right) {
      a.insert(a.end(), {3, 4});
      b.insert(b.end(), {3, 4 + 5 * each});
    }
    return error_of_best_tokens(site({1, right.size(), 2}, a, b));
  };
  EXPECT_DOUBLE_EQ(of({0, 0, 0, 0, 1, 1}), 0);
  EXPECT_DOUBLE_EQ(of({0, 0, 0, 0.5, 1, 1}), 0.5);
  EXPECT_DOUBLE_EQ(of({0, 1, 1, 1, 1, 1}), 1);
  EXPECT_TRUE(std::isinf(of({0, 0, 0})));
}

}  // namespace
}  // namespace tensordiff
