#include "convert/merged_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tensordiff {
namespace {

bool has_order(const std::vector<Plan>& plans, char side, const std::vector<uint64_t>& order) {
  return std::ranges::any_of(plans, [&](const Plan& plan) {
    return std::ranges::find(plan, Step{side, Op::permute, order}) != plan.end();
  });
}

TEST(MergedKernel, TakesPatchesInEachOrder) {
  const std::vector<Plan> plans = merged_kernel_plans({32, 3, 4, 4}, {32, 48});
  EXPECT_TRUE(has_order(plans, 'a', {0, 2, 3, 1}));  // [out, height * width * channels]
  EXPECT_TRUE(has_order(plans, 'a', {0, 2, 1, 3}));  // [out, height * channels * width]
  const std::vector<Plan> kernel_first = merged_kernel_plans({48, 32}, {32, 3, 4, 4});
  EXPECT_TRUE(has_order(kernel_first, 'b', {2, 3, 1, 0}));
}

TEST(MergedKernel, NeverPutsWidthBeforeHeight) {
  const std::vector<Plan> plans = merged_kernel_plans({32, 3, 4, 4}, {32, 48});
  EXPECT_FALSE(has_order(plans, 'a', {0, 1, 3, 2}));
  EXPECT_FALSE(has_order(plans, 'a', {0, 3, 2, 1}));
}

TEST(MergedKernel, LeavesOtherTensorsAlone) {
  // The features of heads never move into a merged axis.
  EXPECT_TRUE(merged_kernel_plans({64, 4, 16}, {64, 64}).empty());
  EXPECT_TRUE(merged_kernel_plans({32, 3, 4, 4}, {32, 40}).empty());
  EXPECT_TRUE(merged_kernel_plans({32, 3, 4, 4}, {4, 4, 3, 32}).empty());
}

}  // namespace
}  // namespace tensordiff
