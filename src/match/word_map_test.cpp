#include "match/word_map.h"

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

// Three layers with two modules of one shape; in the second, the two changed places in B.
TEST(WordMap, TwoWordsThatGoTheOtherWayElsewhereTellAnExchange) {
  std::vector<Named> a, b;
  Names expected;
  for (unsigned i = 0; i < 3; ++i) {
    const std::string layer = std::to_string(i);
    const std::string of_a = "s." + layer + ".part.", of_b = "z." + layer + ".";
    const unsigned inner = 2 * i + 1, outer = 2 * i + 2;
    a.push_back({of_a + "1.foo.deep", {8, 6}, inner});
    a.push_back({of_a + "2.bar.deep", {8, 6}, outer});
    b.push_back({of_b + "ux", {6, 8}, i == 1 ? outer : inner});
    b.push_back({of_b + "vx", {6, 8}, i == 1 ? inner : outer});
    expected.push_back(a[2 * i].name + "=" + b[2 * i].name);
    expected.push_back(a[2 * i + 1].name + "=" + b[2 * i + 1].name);
  }
  EXPECT_EQ(pairs_of(catalog_of(a), catalog_of(b)), expected);
}

// A word that both sides have stands for itself, unless other pairs say that it does not.
TEST(WordMap, TheSameWordStandsForItselfWhereNothingElseIsKnown) {
  const auto of = [](std::vector<Named> b) {
    return pairs_of(catalog_of(std::vector<Named>{{"cls_token", {1, 1, 24}, 1},
                                                  {"dist_token", {1, 1, 24}, 2},
                                                  {"head_dist.mat", {5, 24}, 3}}),
                    catalog_of(b));
  };
  EXPECT_EQ(of({{"emb.cls_token", {24}, 2},
                {"emb.distillation_token", {24}, 1},
                {"distillation_classifier.mat", {24, 5}, 3}}),
            (Names{"cls_token=emb.cls_token", "dist_token=emb.distillation_token",
                   "head_dist.mat=distillation_classifier.mat"}));
}

}  // namespace
}  // namespace tensordiff
