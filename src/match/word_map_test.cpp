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
    a.push_back({of_a + "1.foo.deep.weight", {8, 6}, inner});
    a.push_back({of_a + "2.bar.deep.weight", {8, 6}, outer});
    b.push_back({of_b + "ux.weight", {6, 8}, i == 1 ? outer : inner});
    b.push_back({of_b + "vx.weight", {6, 8}, i == 1 ? inner : outer});
    expected.push_back(a[2 * i].name + "=" + b[2 * i].name);
    expected.push_back(a[2 * i + 1].name + "=" + b[2 * i + 1].name);
  }
  EXPECT_EQ(pairs_of(catalog_of(a), catalog_of(b)), expected);
}

// A word that both sides have stands for itself; of two other words, another pair has to tell.
TEST(WordMap, TheSameWordStandsForItselfWhereNothingElseIsKnown) {
  const Catalog a = catalog_of(Names{"cls_token", "dist_token", "head_dist.weight"});
  const Catalog b = catalog_of(
      Names{"emb.cls_token", "emb.distillation_token", "distillation_classifier.weight"});
  const MatchOptions options;
  const MatchInput input{.a = a, .b = b, .free_a = {}, .free_b = {}, .options = options};
  const auto paired = [](std::size_t of_a, std::size_t of_b) {
    return Pair{.a = of_a, .b = of_b, .layer = {}, .stage = {}, .matched_by = &matchers::value};
  };
  const Pair x = paired(0, 1), y = paired(1, 0);
  WordMap words(input);
  words.add(x, 1);
  words.add(y, 1);
  EXPECT_FALSE(words.speak_for_exchange(x, y));
  words.add(paired(2, 2), 1);
  EXPECT_TRUE(words.speak_for_exchange(x, y));
}

}  // namespace
}  // namespace tensordiff
