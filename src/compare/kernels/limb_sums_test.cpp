#include "compare/kernels/limb_sums.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "compare/kernels/test_targets.h"

namespace tensordiff {
namespace {

using kernels::LimbedPowers;
using kernels::LimbSums;

void expect_same(const LimbSums& found, const LimbSums& plain, const char* target,
                 std::size_t count) {
  for (std::size_t lane = 0; lane < 2; ++lane)
    for (std::size_t limb = 0; limb < LimbedPowers::kLimbs; ++limb)
      EXPECT_EQ(found.of[lane][limb], plain.of[lane][limb]) << target << ", " << count;
}

TEST(LimbSums, AreThoseOfThePlainTwin) {
  LimbedPowers powers;
  for (std::size_t i = 0; i < LimbedPowers::kCount; ++i)
    for (std::size_t lane = 0; lane < 2; ++lane)
      powers.set(lane, i, 0x9e3779b97f4a7c15U * (i + lane + 1) >> 3);
  std::vector<uint32_t> values(LimbedPowers::kCount);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = std::bit_cast<uint32_t>(std::sin(static_cast<float>(i)));
  const float odd[] = {0.0F,
                       -0.0F,
                       std::numeric_limits<float>::infinity(),
                       -1e-44F,
                       std::numeric_limits<float>::quiet_NaN(),
                       -std::numeric_limits<float>::quiet_NaN()};
  for (std::size_t i = 0; i < std::size(odd); ++i)
    values[7 * i + 3] = std::bit_cast<uint32_t>(odd[i]);
  on_every_target([&](const char* target) {
    for (const std::size_t count : {0, 1, 3, 8, 15, 16, 33, 64, 511, 512})
      expect_same(kernels::sum_limbs(values.data(), count, powers),
                  kernels::reference::sum_limbs(values.data(), count, powers), target, count);
  });
}

TEST(LimbSums, HoldTheLargestValuesAndPowers) {
  LimbedPowers powers;
  for (std::size_t i = 0; i < LimbedPowers::kCount; ++i)
    for (std::size_t lane = 0; lane < 2; ++lane) powers.set(lane, i, (uint64_t{1} << 63) - 1);
  const uint32_t most = 0xff800000U;  // Minus infinity: no number has larger bits.
  const std::vector<uint32_t> values(LimbedPowers::kCount, most);
  on_every_target([&](const char* target) {
    const LimbSums sums = kernels::sum_limbs(values.data(), values.size(), powers);
    EXPECT_EQ(sums.of[1][2], uint64_t{LimbedPowers::kCount} * most * ((1U << 21) - 1)) << target;
  });
}

TEST(LimbSums, CountZerosAsOneAndNanAsOne) {
  EXPECT_EQ(kernels::digest_bits(0x80000000U), 0U);
  EXPECT_EQ(kernels::digest_bits(0xffc01234U), 0x7fc00000U);
  EXPECT_EQ(kernels::digest_bits(0x7f800000U), 0x7f800000U);
  EXPECT_EQ(kernels::digest_bits(1U), 1U);
}

}  // namespace
}  // namespace tensordiff
