#include "tensor/sample.h"

#include <algorithm>
#include <limits>

#include "tensor/test_views.h"

namespace tensordiff {
namespace {

TEST(SamplePositions, AreAllWhereThereAreFew) {
  EXPECT_EQ(sample_positions(4, 10), (std::vector<uint64_t>{0, 1, 2, 3}));
  EXPECT_TRUE(sample_positions(0, 10).empty());
}

TEST(SamplePositions, AreScatteredOverTheWhole) {
  const std::vector<uint64_t> positions = sample_positions(1'000'000, 256);
  EXPECT_EQ(positions.size(), 256U);
  EXPECT_TRUE(std::ranges::is_sorted(positions));
  EXPECT_LT(positions.front(), 50'000U);
  EXPECT_GT(positions.back(), 950'000U);
  EXPECT_LT(positions.back(), 1'000'000U);
  // No period: the last digits of the positions are not few.
  for (const uint64_t period : {64, 100, 128, 4096}) {
    std::vector<uint64_t> rest;
    for (const uint64_t position : positions) rest.push_back(position % period);
    std::ranges::sort(rest);
    EXPECT_GT(std::ranges::unique(rest).begin() - rest.begin(), 48) << period;
  }
}

TEST(Unexplained, IsBlindToScaleAndOffset) {
  const std::vector<double> x = {1, 2, 3, 5, 8};
  const std::vector<double> y = {7, 5, 3, -1, -7};  // 9 - 2 x
  EXPECT_NEAR(unexplained(x, y), 0, 1e-15);
  EXPECT_NEAR(unexplained(x, std::vector<double>{1, -1, 1, -1, 1}), 1, 0.1);
}

TEST(Unexplained, LeavesOutWhatIsNotFinite) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<double> x = {1, nan, 3, 5, 8};
  EXPECT_NEAR(unexplained(x, std::vector<double>{2, 0, 6, inf, 16}), 0, 1e-15);
  EXPECT_EQ(unexplained(x, std::vector<double>{nan, 0, 6, inf, 16}), 1);  // Two are no evidence.
}

TEST(Unexplained, KnowsConstantsOnlyByTheirValue) {
  const std::vector<double> three(5, 3);
  EXPECT_EQ(unexplained(three, three), 0);
  EXPECT_EQ(unexplained(three, std::vector<double>(5, 4)), 1);
  EXPECT_EQ(unexplained(three, std::vector<double>{1, 2, 3, 4, 5}), 1);
}

TEST(Unexplained, StandsTheLargestAndSmallestNumbers) {
  const std::vector<double> large = {1e308, -1e308, 5e307, 0};
  const std::vector<double> small = {1e-308, -1e-308, 5e-309, 0};
  EXPECT_NEAR(unexplained(large, small), 0, 1e-12);
}

}  // namespace
}  // namespace tensordiff
