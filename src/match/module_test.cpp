#include "match/test_catalogs.h"

namespace tensordiff {
namespace {

// By values, and then by what the modules of those pairs have else.
Names paired(const Catalog& a, const Catalog& b) {
  MatchOptions options;
  options.strategies = {"value", "module"};
  return pairs_text(match(a, b, options).value(), a, b);
}

TEST(Module, PairsTheOtherParametersOfAPairedModule) {
  const Catalog a = catalog_of({{"seq.2.dense.weight", {16, 16}, 1},
                                {"seq.2.dense.bias", {16}, 2},
                                {"seq.3.dense.weight", {16, 16}, 3},
                                {"seq.3.dense.bias", {16}, 4}});
  const Catalog b = catalog_of({{"layers.0.out.weight", {16, 16}, 1},
                                {"layers.0.out.bias", {16}, 20},
                                {"layers.1.out.weight", {16, 16}, 3},
                                {"layers.1.out.bias", {16}, 40}});
  EXPECT_EQ(
      paired(a, b),
      (Names{"seq.2.dense.weight=layers.0.out.weight", "seq.2.dense.bias=layers.0.out.bias",
             "seq.3.dense.weight=layers.1.out.weight", "seq.3.dense.bias=layers.1.out.bias"}));
}

TEST(Module, KnowsAParameterByAnyOfItsNames) {
  const Catalog a = catalog_of({{"x.fc.bias", {64}, 1}, {"x.fc.weight", {16, 8}, 2}});
  const Catalog b = catalog_of({{"y/up/bias", {64}, 1}, {"y/up/kernel", {8, 16}, 30}});
  EXPECT_EQ(paired(a, b), (Names{"x.fc.bias=y/up/bias", "x.fc.weight=y/up/kernel"}));
}

TEST(Module, LeavesModulesAloneWhosePairsAreNotOfOneMind) {
  const Catalog a =
      catalog_of({{"x.weight", {16, 16}, 1}, {"x.bias", {64}, 2}, {"x.scale", {16}, 3}});
  const Catalog b =
      catalog_of({{"y.weight", {16, 16}, 1}, {"z.bias", {64}, 2}, {"y.scale", {16}, 5}});
  EXPECT_EQ(paired(a, b), (Names{"x.weight=y.weight", "x.bias=z.bias"}));
}

}  // namespace
}  // namespace tensordiff
