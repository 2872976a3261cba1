#include "match/name_map.h"

#include "match/name_features.h"

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

// A converter that numbers the inner layers of a head anew: "head.0" means two things.
TEST(NameMap, AModuleOfTheSameNameGivesWayToThoseThatHoldTheValues) {
  const Catalog a = catalog_of(std::vector<Named>{{"trunk.weight", {8, 9}, 9},
                                                  {"head.0.weight", {8, 4}, 1},
                                                  {"head.0.bias", {8}, 2},
                                                  {"head.1.weight", {8, 4}, 3},
                                                  {"head.1.bias", {8}, 4}});
  std::vector<Named> of_b = {{"trunk.weight", {8, 9}, 9},
                             {"head.first.weight", {8, 4}, 1},
                             {"head.first.bias", {8}, 2},
                             {"head.0.weight", {8, 4}, 3},
                             {"head.0.bias", {8}, 4}};
  EXPECT_EQ(pairs_of(a, catalog_of(of_b)),
            (Names{"head.0.bias=head.first.bias", "head.0.weight=head.first.weight",
                   "head.1.bias=head.0.bias", "head.1.weight=head.0.weight",
                   "trunk.weight=trunk.weight"}));
  of_b[3].seed = 5;  // Where one parameter says nothing of the kind, names stay what they are.
  const Names pairs = pairs_of(a, catalog_of(of_b));
  EXPECT_EQ(std::ranges::count(pairs, "head.0.weight=head.0.weight"), 1);
}

// The scale and the shift of logits, "params/t" and "params/b" in the one file.
TEST(NameMap, SingleNumbersThatAreLeftArePairedWhereTheyAreEqual) {
  const auto with = [](const std::string& one, const std::string& other, float value) {
    Catalog catalog = catalog_of(std::vector<Named>{
        {"trunk.weight", {8, 9}, 9}, {"trunk.bias", {9}, 8}, {"head.weight", {8, 7}, 7}});
    catalog.tensors.push_back({one, f32_view({1}, {0.123456F}), ""});
    catalog.tensors.push_back({other, f32_view({1}, {value}), ""});
    read_places(catalog);
    return catalog;
  };
  EXPECT_EQ(pairs_of(with("t", "b", -1.7654F), with("quux", "offset", -1.7654F)),
            (Names{"b=offset", "head.weight=head.weight", "t=quux", "trunk.bias=trunk.bias",
                   "trunk.weight=trunk.weight"}));
  // What is round may be any setting.
  EXPECT_EQ(pairs_of(with("t", "b", 0.5F), with("quux", "offset", 0.5F)),
            (Names{"head.weight=head.weight", "t=quux", "trunk.bias=trunk.bias",
                   "trunk.weight=trunk.weight"}));
}

// One scale for each of a few heads: too few elements to be told by value.
TEST(NameMap, SmallTensorsOfOneBlockArePairedByTheirOwnName) {
  std::vector<Named> of_a, of_b;
  for (unsigned i = 0; i < 3; ++i) {
    const std::string layer = std::to_string(i);
    of_a.push_back({"s." + layer + ".foo.bar.weight", {8, 8}, 10 * i + 1});
    of_a.push_back({"s." + layer + ".foo.bar.bias", {24}, 10 * i + 3});
    of_a.push_back({"s." + layer + ".baz.weight", {8, 9}, 10 * i + 4});
    of_a.push_back({"s." + layer + ".foo.heat", {2}, 10 * i + 2});
    of_b.push_back({"z." + layer + ".quux.inner.u.kernel", {8, 8}, 10 * i + 1});
    of_b.push_back({"z." + layer + ".quux.inner.u.bias", {24}, 10 * i + 3});
    of_b.push_back({"z." + layer + ".v.kernel", {8, 9}, 10 * i + 4});
    of_b.push_back({"z." + layer + ".quux.inner.heat", {2}, 10 * i + 2});
  }
  // Two of a name in one block are not told apart.
  for (const char* name : {"s.1.one.cold", "s.1.two.cold"}) of_a.push_back({name, {3}, 41});
  for (const char* name : {"z.1.three.cold", "z.1.four.cold"}) of_b.push_back({name, {3}, 43});
  const Names pairs = pairs_of(catalog_of(of_a), catalog_of(of_b));
  for (const char* pair : {"s.0.foo.heat=z.0.quux.inner.heat", "s.1.foo.heat=z.1.quux.inner.heat",
                           "s.2.foo.heat=z.2.quux.inner.heat"})
    EXPECT_EQ(std::ranges::count(pairs, pair), 1) << pair;
  EXPECT_EQ(pairs.size(), of_a.size() - 2);
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
