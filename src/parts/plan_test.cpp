#include "parts/plan.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace tensordiff {
namespace {

// Where each pair goes: its slices over all parts, in order.
std::map<std::size_t, std::vector<Share>> shares(const std::vector<uint64_t>& costs, uint64_t of) {
  std::map<std::size_t, std::vector<Share>> all;
  for (uint64_t part = 1; part <= of; ++part)
    for (const Slice& slice : plan_part(costs, {part, of})) all[slice.pair].push_back(slice.share);
  return all;
}

uint64_t cost_of(const std::vector<Slice>& slices) {
  uint64_t cost = 0;
  for (const Slice& slice : slices) cost += slice.share.end - slice.share.first;
  return cost;
}

TEST(Plan, CutsAtEqualCosts) {
  const std::vector<uint64_t> costs = {10, 30, 20};
  EXPECT_EQ(plan_part(costs, {1, 2}), (std::vector<Slice>{{0, {0, 10, 10}}, {1, {0, 20, 30}}}));
  EXPECT_EQ(plan_part(costs, {2, 2}), (std::vector<Slice>{{1, {20, 30, 30}}, {2, {0, 20, 20}}}));
  EXPECT_EQ(plan_part(costs, {1, 1}).size(), 3U);
  EXPECT_TRUE(plan_part({}, {1, 2}).empty());
}

TEST(Plan, HasEachPairOnceInAllParts) {
  std::mt19937_64 random(25);
  for (const uint64_t of : {1U, 2U, 7U, 64U, 1000U}) {
    std::vector<uint64_t> costs(1 + random() % 200);
    for (uint64_t& cost : costs) cost = 65536 + random() % (uint64_t{1} << (random() % 40));
    const auto all = shares(costs, of);
    ASSERT_EQ(all.size(), costs.size());
    for (const auto& [pair, of_pair] : all) {
      uint64_t done = 0;
      for (const Share& share : of_pair) {
        EXPECT_EQ(share.first, done);
        EXPECT_EQ(share.of, costs[pair]);
        done = share.end;
      }
      EXPECT_EQ(done, costs[pair]);
    }
  }
}

TEST(Plan, IsBalancedAlsoWithOneHugeTensor) {
  const std::vector<uint64_t> costs = {100'000'000'000, 3, 5, 1'000'000};
  for (uint64_t part = 1; part <= 16; ++part)
    EXPECT_NEAR(static_cast<double>(cost_of(plan_part(costs, {part, 16}))), 100'001'000'008 / 16.0,
                1.0);
}

TEST(Plan, DoesNotOverflow) {
  const std::vector<uint64_t> costs(1000, uint64_t{1} << 57);
  EXPECT_EQ(cost_of(plan_part(costs, {kPartsMax, kPartsMax})),
            static_cast<uint64_t>(1000 * (static_cast<double>(uint64_t{1} << 57) / kPartsMax)));
}

}  // namespace
}  // namespace tensordiff
