#include "match/fusion.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "match/test_catalogs.h"

namespace tensordiff {
namespace {

// Three layers: a whole of four experts each, and the experts.
struct Experts {
  std::vector<Named> of_wholes, of_parts;
  Catalog wholes, parts;
  Names names_of_wholes, names_of_parts;
  std::vector<std::size_t> free_wholes, free_parts;

  explicit Experts(std::string_view whole) {
    for (unsigned layer = 0; layer < 3; ++layer) {
      of_wholes.push_back({fmt::format("h.{}.{}", layer, whole), {32, 4}, layer});
      for (unsigned i = 0; i < 4; ++i)
        of_parts.push_back({fmt::format("h.{}.expert.{}", layer, i), {8, 4}, 9 + i});
    }
    wholes = catalog_of(of_wholes);
    parts = catalog_of(of_parts);
    for (const Named& each : of_wholes) names_of_wholes.push_back(each.name);
    for (const Named& each : of_parts) names_of_parts.push_back(each.name);
    free_wholes.resize(of_wholes.size());
    free_parts.resize(of_parts.size());
    std::iota(free_wholes.begin(), free_wholes.end(), 0);
    std::iota(free_parts.begin(), free_parts.end(), 0);
  }
  FreeSide side_of_wholes() const { return {wholes, names_of_wholes, free_wholes}; }
  FreeSide side_of_parts() const { return {parts, names_of_parts, free_parts}; }
};

using Parts = std::vector<std::size_t>;

TEST(Fusion, HoldsAWholeToTheExpertsOfItsLayer) {
  const Experts experts("all");
  std::vector<Fusion> fusions = {{0, {0, 1, 2, 7}}, {1, {4, 5, 6, 3}}, {2, {8, 9, 10, 11}}};
  follow_rules(experts.side_of_wholes(), experts.side_of_parts(), fusions);
  ASSERT_EQ(fusions.size(), 3U);
  std::ranges::sort(fusions, {}, &Fusion::whole);
  EXPECT_EQ(fusions[0].parts, (Parts{0, 1, 2, 3}));
  EXPECT_EQ(fusions[1].parts, (Parts{4, 5, 6, 7}));
}

TEST(Fusion, LeavesWhatFollowsNoRule) {
  const Experts experts("all");
  std::vector<Fusion> fusions = {{0, {4, 5, 6, 7}}, {1, {8, 9, 10, 11}}};
  follow_rules(experts.side_of_wholes(), experts.side_of_parts(), fusions);
  ASSERT_EQ(fusions.size(), 2U);
  EXPECT_EQ(fusions[0].parts, (Parts{4, 5, 6, 7}));
}

// A number in the name of the whole may be that of an expert, too, and says nothing of the order.
TEST(Fusion, KeepsTheOrderWhereTheNameOfTheWholeHasANumber) {
  const Experts experts("fc2");
  std::vector<Fusion> fusions = {{0, {0, 1, 2, 3}}, {1, {4, 5, 6, 7}}, {2, {8, 10, 9, 11}}};
  std::vector<std::string> notes;
  put_in_order(experts.side_of_wholes(), experts.side_of_parts(), fusions, notes);
  EXPECT_EQ(fusions[1].parts, (Parts{4, 5, 6, 7}));
  EXPECT_EQ(fusions[2].parts, (Parts{8, 9, 10, 11}));
  EXPECT_EQ(notes.size(), 1U);
}

}  // namespace
}  // namespace tensordiff
