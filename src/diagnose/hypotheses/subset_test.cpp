#include "diagnose/hypotheses/subset.h"

#include <gtest/gtest.h>

#include "diagnose/toys/toy_values.h"

namespace tensordiff {
namespace {

// Two outputs that have no common layout.
Told explained(const Shape& shape_a, const Values& a, const Shape& shape_b, const Values& b) {
  LoneTensors lone{{{"step", 0, view_of(shape_a, a, DType::f32)}},
                   {{"step", 0, view_of(shape_b, b, DType::f32)}}};
  Site site;
  site.comparison.status = Status::incomparable;
  Told told;
  explain_subset(lone, site, told);
  return told;
}

TEST(ExplainSubset, AStrideThatAnotherStepShouldHaveIsFound) {
  const Values a = random_values(2 * 6 * 6, 1);
  Values b;
  for (uint64_t i = 0; i < a.size(); ++i)
    if (i / 6 % 6 % 2 == 0 && i % 6 % 2 == 0) b.push_back(a[i]);
  const Told told = explained({1, 2, 6, 6}, a, {1, 2, 3, 3}, b);
  ASSERT_TRUE(told.finding);
  EXPECT_EQ(told.finding->explanation,
            "B holds a part of A: every second position along axes 2 and 3, from 0 on: a stride");
}

TEST(ExplainSubset, FewerRowsAreFoundOnEitherSide) {
  const Values a = random_values(5 * 4, 1);
  Values b;
  for (const int64_t row : {0, 2, 3})
    b.insert(b.end(), a.begin() + row * 4, a.begin() + row * 4 + 4);
  EXPECT_TRUE(explained({5, 4}, a, {3, 4}, b).finding);
  EXPECT_TRUE(explained({3, 4}, b, {5, 4}, a).finding);
}

TEST(ExplainSubset, NothingIsSaidOfOtherValuesOrOfAsMany) {
  const Values a = random_values(5 * 4, 1);
  EXPECT_FALSE(explained({5, 4}, a, {3, 4}, random_values(3 * 4, 2)).finding);
  EXPECT_FALSE(explained({5, 4}, a, {20}, a).finding);
}

}  // namespace
}  // namespace tensordiff
