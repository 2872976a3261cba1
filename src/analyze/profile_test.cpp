#include "analyze/profile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "analyze/group_sums.h"
#include "analyze/patch.h"
#include "analyze/test_models.h"

namespace tensordiff {
namespace {

AlignedPair pair_of(const View& a, const View& b) { return {a, b, {}}; }

TEST(GroupSums, OfRows) {
  const View a = f32_view({2, 3}, {1, 2, 2, 0, 0, 0});
  const View b = f32_view({2, 3}, {1, 2, 4, 0, 3, 0});
  const std::vector<GroupSum> rows = group_sums(pair_of(a, b), {3, 2}).value();
  EXPECT_EQ(rows[0].aa, 9);
  EXPECT_EQ(rows[0].dd, 4);
  EXPECT_EQ(rows[0].ab, 13);
  EXPECT_EQ(rows[1].bb, 9);
  EXPECT_NEAR(*rows[0].relative(), 2.0 / 3, 1e-15);
  EXPECT_FALSE(rows[1].relative());
}

TEST(GroupSums, OfBlocksSideBySide) {
  const View a = f32_view({2, 4}, {1, 1, 2, 2, 3, 3, 4, 4});
  const std::vector<GroupSum> heads = group_sums(pair_of(a, a), {2, 2}).value();
  EXPECT_EQ(heads[0].aa, 1 + 1 + 9 + 9);
  EXPECT_EQ(heads[1].aa, 4 + 4 + 16 + 16);
}

TEST(GroupSums, LeaveOutWhatIsNotFinite) {
  const View a = f32_view({2, 2}, {1, NAN, 1, 1});
  const View b = f32_view({2, 2}, {2, 5, INFINITY, 1});
  const std::vector<GroupSum> rows = group_sums(pair_of(a, b), {2, 2}).value();
  EXPECT_EQ(rows[0].aa, 1);
  EXPECT_EQ(rows[0].bb, 4);
  EXPECT_EQ(rows[1].bb, 1);
}

// Larger than a chunk, with runs that do not divide it.
TEST(GroupSums, AddUpToTheWhole) {
  const View a = noise_view({3, 400'001}, 1), b = noise_view({3, 400'001}, 2);
  const Comparison all = compare(pair_of(a, b)).value();
  for (const Grouping grouping : {Grouping{400'001, 3}, Grouping{7, 5}, Grouping{1'200'003, 1}}) {
    double aa = 0, dd = 0;
    const std::vector<GroupSum> groups = group_sums(pair_of(a, b), grouping).value();
    for (const GroupSum& group : groups) aa += group.aa, dd += group.dd;
    EXPECT_NEAR(aa / squares_of(all.a), 1, 1e-9);
    EXPECT_NEAR(dd / squares_of_change(all), 1, 1e-9);
  }
}

TEST(Spread, IsAscendingAndWithoutRepetition) {
  for (const uint64_t count : {5ULL, 100ULL, 12'345ULL, 1ULL << 40}) {
    const std::vector<uint64_t> places = spread(count, 96);
    EXPECT_EQ(places.size(), std::min<uint64_t>(count, 96));
    EXPECT_EQ(std::set(places.begin(), places.end()).size(), places.size());
    EXPECT_TRUE(std::is_sorted(places.begin(), places.end()));
    EXPECT_LT(places.back(), count);
  }
}

TEST(Patch, HoldsSmallTensorsWhole) {
  const Dense patch = read_patch(counting_view({3, 2, 2})).value();
  EXPECT_EQ(patch.rows, 3);
  EXPECT_EQ(patch.columns, 4);
  EXPECT_EQ(patch.values[5], 5);
  EXPECT_FALSE(is_sampled({3, 2, 2}));
}

TEST(Patch, TakesRunsOfLargeOnes) {
  const Dense patch = read_patch(counting_view({1000, 500})).value();
  EXPECT_EQ(patch.rows, 96);
  EXPECT_EQ(patch.columns, 192);
  EXPECT_TRUE(is_sampled({1000, 500}));
  EXPECT_EQ(patch.values[1], patch.values[0] + 1);
  EXPECT_EQ(static_cast<int>(patch.values[0]) % 500 % 16, 0);
}

TEST(KolmogorovSmirnov, IsTheLargestGap) {
  EXPECT_EQ(kolmogorov_smirnov({1, 2, 3}, {3, 1, 2}), 0);
  EXPECT_EQ(kolmogorov_smirnov({1, 2}, {3, 4}), 1);
  EXPECT_DOUBLE_EQ(kolmogorov_smirnov({1, 2, 3, 4}, {1, 2, 9, 9}), 0.5);
  EXPECT_EQ(kolmogorov_smirnov({}, {1}), 0);
  // Of either sign and of any size, and zero is zero.
  EXPECT_EQ(kolmogorov_smirnov({-2e300, 5e-324, -0.0, 1e-20, -3}, {1e-20, 0.0, -3, 5e-324, -2e300}),
            0);
  EXPECT_EQ(kolmogorov_smirnov({-1, -2, -3, 0.5}, {1, 2, 3, 0.75}), 1);
}

TEST(Profile, MeasuresRowsSpectraAndLevels) {
  std::vector<float> before = noise(40 * 30, 1);
  std::vector<float> after = before;
  for (std::size_t i = 0; i < 30; ++i) after[i] = 0;
  for (std::size_t i = 0; i < 30; ++i) after[60 + i] = 2 * after[30 + i];
  const Model a = Model().add("w", {40, 30}, before), b = Model().add("w", {40, 30}, after);
  const std::unique_ptr<Compared> all = compared(a, b);
  const Profile& profile = all->study->profiles().at(0);
  EXPECT_TRUE(profile.by_row);
  EXPECT_FALSE(profile.sampled);
  EXPECT_EQ(profile.rows_a.dead, 0);
  EXPECT_EQ(profile.rows_b.dead, 1);
  EXPECT_EQ(profile.rows_b.duplicates, 1);
  EXPECT_EQ(profile.rows_a.duplicates, 0);
  EXPECT_EQ(profile.rows_changed, 2);
  EXPECT_EQ(profile.spectrum_change.rank_holding(0.999999), 2);
}

// Zeros that fill no row, and rows that are zero only at their front.
TEST(Profile, CountsRowsByTheirValues) {
  std::vector<float> before = noise(64 * 40, 3);
  for (std::size_t row = 0; row < 64; ++row)
    for (std::size_t i = 0; i < 20; ++i) before[row * 40 + i] = 0;
  std::vector<float> after = before;
  for (std::size_t i = 20; i < 40; ++i) after[9 * 40 + i] = 0;
  for (const std::size_t row : {3U, 30U}) after[row * 40 + 39] += 1;
  const Model a = Model().add("w", {64, 40}, before), b = Model().add("w", {64, 40}, after);
  const std::unique_ptr<Compared> all = compared(a, b);
  const Profile& profile = all->study->profiles().at(0);
  EXPECT_EQ(profile.rows_a.dead, 0);
  EXPECT_EQ(profile.rows_b.dead, 1);
  EXPECT_EQ(profile.rows_changed, 3);
  EXPECT_EQ(profile.rows_a.dead_columns, 20);
  EXPECT_EQ(profile.rows_b.dead_columns, 20);
  EXPECT_EQ(zero_rows(f32_view({64, 40}, after)), std::vector<uint64_t>{9});
}

}  // namespace
}  // namespace tensordiff
