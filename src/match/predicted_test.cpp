#include "match/predicted.h"

#include <fmt/format.h>

#include <algorithm>

#include "match/test_catalogs.h"

namespace tensordiff {
namespace {

struct Found {
  Names pairs, notes;
};

Found paired(const std::vector<Named>& a, const std::vector<Named>& b) {
  const Catalog left = catalog_of(a), right = catalog_of(b);
  const Result<Matching> matching = match(left, right);
  Found found{pairs_text(matching.value(), left, right), matching.value().notes};
  std::ranges::sort(found.pairs);
  return found;
}

// Four blocks, which B counts through from 10 on under names that say nothing.
struct Blocks {
  std::vector<Named> a, b;
  Names expected;

  Blocks() {
    for (unsigned i = 0; i < 4; ++i) {
      a.push_back({fmt::format("zz.{}.{}.foo.weight", i / 2, i % 2), {8, 8}, i});
      b.push_back({fmt::format("yy.{}.bar.kernel", 10 + i), {8, 8}, i});
      a.push_back({fmt::format("zz.{}.{}.fee.weight", i / 2, i % 2), {8, 12}, 20 + i});
      b.push_back({fmt::format("yy.{}.bee.kernel", 10 + i), {8, 12}, 20 + i});
    }
    for (std::size_t i = 0; i < a.size(); ++i) expected.push_back(a[i].name + "=" + b[i].name);
    std::ranges::sort(expected);
  }
};

TEST(Predicted, ATensorWithOtherValuesIsPairedAsItsKindIsCounted) {
  Blocks blocks;
  blocks.b[2].seed = 77;
  blocks.b[5].seed = 78;  // Of another kind: neither is the last one left of its shape alone.
  EXPECT_EQ(paired(blocks.a, blocks.b).pairs, blocks.expected);
}

TEST(Predicted, ACopyOfAnotherLayerIsNotItsPartner) {
  Blocks blocks;
  blocks.b[0].seed = blocks.b[4].seed;  // The first block of B holds the third one's.
  const Found found = paired(blocks.a, blocks.b);
  EXPECT_EQ(found.pairs, blocks.expected);
  EXPECT_EQ(found.notes, Names{"1 tensor of B has the values that another layer has, too: paired "
                               "by number, not by value"});
}

TEST(Predicted, TheLastTensorsOfAShapeArePaired) {
  Blocks blocks;
  blocks.a.push_back({"zz.table", {16, 8}, 40});
  blocks.b.push_back({"yy.lookup", {8, 16}, 41});
  blocks.expected.push_back("zz.table=yy.lookup");
  std::ranges::sort(blocks.expected);
  EXPECT_EQ(paired(blocks.a, blocks.b).pairs, blocks.expected);
}

TEST(Predicted, TwoTensorsOfAShapeAreNotGuessed) {
  Blocks blocks;
  for (const unsigned i : {0U, 1U}) {
    blocks.a.push_back({i == 0 ? "zz.table" : "zz.register", {16, 8}, 40 + i});
    blocks.b.push_back({i == 0 ? "yy.lookup" : "yy.memory", {16, 8}, 50 + i});
  }
  EXPECT_EQ(paired(blocks.a, blocks.b).pairs, blocks.expected);
}

}  // namespace
}  // namespace tensordiff
