#include "match/counting.h"

#include <gtest/gtest.h>

namespace tensordiff {
namespace {

const Counting::Paths kPaths = {"a.#", "b.#"};

Counting counting_of(const std::vector<std::pair<uint64_t, uint64_t>>& numbers) {
  Counting counting;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    counting.add("a.#.x", "b.#.y", {i, {numbers[i].first}, {numbers[i].second}});
  return counting;
}

TEST(Counting, ReadsPatternAndNumbers) {
  EXPECT_EQ(parse("h.12.ln_1.w"), (Parsed{"h.#.ln_#.w", {12, 1}}));
  EXPECT_EQ(path_to("h.#.ln_#.w", 0), "h.#");
  EXPECT_EQ(path_to("h.#.ln_#.w", 1), "h.#.ln_#");
}

TEST(Counting, TakesTheMapOfMostTensors) {
  Counting counting = counting_of({{0, 3}, {0, 3}, {0, 4}, {1, 4}, {1, 4}});
  const Counting::Map* map = counting.of(kPaths);
  ASSERT_NE(map, nullptr);
  EXPECT_EQ(*map, (Counting::Map{{0, 3}, {1, 4}}));
  EXPECT_FALSE(counting.all_follow(kPaths, *map));
}

TEST(Counting, TwoThatChangedPlacesAreNoWayOfCounting) {
  EXPECT_EQ(counting_of({{0, 1}, {1, 0}}).of(kPaths), nullptr);
  EXPECT_NE(counting_of({{0, 2}, {1, 1}, {2, 0}}).of(kPaths), nullptr);  // From the other end.
}

TEST(Counting, IsSureWhereOtherKindsAgree) {
  Counting counting = counting_of({{0, 1}, {1, 0}, {0, 0}, {0, 0}, {1, 1}, {1, 1}});
  const Counting::Map* map = counting.of(kPaths);
  ASSERT_NE(map, nullptr);
  EXPECT_TRUE(counting.is_sure(kPaths, *map, 2, 0));
  EXPECT_FALSE(counting.is_sure(kPaths, *map, 4, 2));
}

}  // namespace
}  // namespace tensordiff
