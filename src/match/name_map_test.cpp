#include "match/name_map.h"

#include <algorithm>

#include "match/test_catalogs.h"

namespace tensordiff {
namespace {

// What the whole chain pairs.
Names pairs_of(const Catalog& a, const Catalog& b) {
  const Result<Matching> matching = match(a, b);
  EXPECT_TRUE(matching.ok());
  Names pairs = pairs_text(matching.value(), a, b);
  std::ranges::sort(pairs);
  return pairs;
}

TEST(NameMap, BiasesOfTwoModulesThatWereExchangedStayWithTheirModules) {
  const Catalog a = catalog_of(std::vector<Named>{{"s.0.foo.weight", {8, 4}, 1},
                                                  {"s.0.foo.bias", {16}, 2},
                                                  {"s.0.bar.weight", {8, 5}, 3},
                                                  {"s.0.bar.bias", {16}, 4},
                                                  {"s.1.foo.bias", {16}, 5},
                                                  {"s.1.bar.bias", {16}, 6}});
  const Catalog b = catalog_of(std::vector<Named>{{"z.0.u.kernel", {8, 4}, 1},
                                                  {"z.0.u.offset", {16}, 4},
                                                  {"z.0.v.kernel", {8, 5}, 3},
                                                  {"z.0.v.offset", {16}, 2},
                                                  {"z.1.u.offset", {16}, 5},
                                                  {"z.1.v.offset", {16}, 6}});
  EXPECT_EQ(pairs_of(a, b), (Names{"s.0.bar.bias=z.0.v.offset", "s.0.bar.weight=z.0.v.kernel",
                                   "s.0.foo.bias=z.0.u.offset", "s.0.foo.weight=z.0.u.kernel",
                                   "s.1.bar.bias=z.1.v.offset", "s.1.foo.bias=z.1.u.offset"}));
}

TEST(NameMap, ANumberBehindAWordIsPartOfIt) {
  std::vector<Named> of_a, of_b;
  for (unsigned i = 0; i < 4; ++i) {
    const std::string layer = std::to_string(i);
    of_a.push_back({"s." + layer + ".asking.weight", {8, 8}, 10 * i + 1});
    of_a.push_back({"s." + layer + ".giving.weight", {8, 8}, 10 * i + 2});
    // In the last layer they changed places.
    of_b.push_back({"z." + layer + ".fc_1.kernel", {8, 8}, 10 * i + (i == 3 ? 2 : 1)});
    of_b.push_back({"z." + layer + ".fc_2.kernel", {8, 8}, 10 * i + (i == 3 ? 1 : 2)});
  }
  const Names pairs = pairs_of(catalog_of(of_a), catalog_of(of_b));
  EXPECT_EQ(std::ranges::count(pairs, "s.3.asking.weight=z.3.fc_1.kernel"), 1);
  EXPECT_EQ(std::ranges::count(pairs, "s.3.giving.weight=z.3.fc_2.kernel"), 1);
}

TEST(NameMap, TwoParametersOfOneModuleKeepTheirNames) {
  const Catalog a = catalog_of(std::vector<Named>{{"s.0.foo.weight", {16}, 1},
                                                  {"s.0.foo.bias", {16}, 2},
                                                  {"s.1.foo.weight", {16}, 3},
                                                  {"s.1.foo.bias", {16}, 4}});
  // In all modules: the map of names alone would call it a convention.
  const Catalog b = catalog_of(std::vector<Named>{{"z.0.u.gamma", {16}, 2},
                                                  {"z.0.u.beta", {16}, 1},
                                                  {"z.1.u.gamma", {16}, 4},
                                                  {"z.1.u.beta", {16}, 3}});
  EXPECT_EQ(pairs_of(a, b), (Names{"s.0.foo.bias=z.0.u.beta", "s.0.foo.weight=z.0.u.gamma",
                                   "s.1.foo.bias=z.1.u.beta", "s.1.foo.weight=z.1.u.gamma"}));
}

TEST(NameMap, ATensorThatHoldsItsNeighboursValuesIsPairedByName) {
  const Catalog a = catalog_of(std::vector<Named>{{"s.0.foo.weight", {8, 4}, 1},
                                                  {"s.0.foo.bias", {16}, 2},
                                                  {"s.1.foo.weight", {8, 4}, 3},
                                                  {"s.1.foo.bias", {16}, 4},
                                                  {"s.2.foo.weight", {8, 4}, 5},
                                                  {"s.2.foo.bias", {16}, 6}});
  const Catalog b = catalog_of(std::vector<Named>{{"z.5.u.kernel", {8, 4}, 1},
                                                  {"z.5.u.offset", {16}, 4},
                                                  {"z.6.u.kernel", {8, 4}, 3},
                                                  {"z.6.u.offset", {16}, 4},
                                                  {"z.7.u.kernel", {8, 4}, 5},
                                                  {"z.7.u.offset", {16}, 6}});
  EXPECT_EQ(pairs_of(a, b), (Names{"s.0.foo.bias=z.5.u.offset", "s.0.foo.weight=z.5.u.kernel",
                                   "s.1.foo.bias=z.6.u.offset", "s.1.foo.weight=z.6.u.kernel",
                                   "s.2.foo.bias=z.7.u.offset", "s.2.foo.weight=z.7.u.kernel"}));
}

TEST(NameMap, ModulesThatAreRenamedAlikeStayPairedByValue) {
  // Every block calls its second norm the first: that is a way of naming.
  const Catalog a = catalog_of(std::vector<Named>{{"s.0.foo.weight", {16}, 1},
                                                  {"s.0.bar.weight", {16}, 2},
                                                  {"s.1.foo.weight", {16}, 3},
                                                  {"s.1.bar.weight", {16}, 4}});
  const Catalog b = catalog_of(std::vector<Named>{{"z.0.bar.scale", {16}, 1},
                                                  {"z.0.foo.scale", {16}, 2},
                                                  {"z.1.bar.scale", {16}, 3},
                                                  {"z.1.foo.scale", {16}, 4}});
  EXPECT_EQ(pairs_of(a, b),
            (Names{"s.0.bar.weight=z.0.foo.scale", "s.0.foo.weight=z.0.bar.scale",
                   "s.1.bar.weight=z.1.foo.scale", "s.1.foo.weight=z.1.bar.scale"}));
}

}  // namespace
}  // namespace tensordiff
