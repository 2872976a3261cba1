#include "match/exchanged.h"

#include <fmt/format.h>

#include <algorithm>

#include "match/checkpoint.h"
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

TEST(FirstNumbers, AreAddedWhereSiblingsHaveOne) {
  EXPECT_EQ(with_first_numbers({"x/decoder/w", "x/decoder_1/w", "x/head/w"}),
            (Names{"x/decoder_0/w", "x/decoder_1/w", "x/head/w"}));
}

TEST(Exchanged, LayersArePairedByNumber) {
  // B's blocks have names that say nothing, and two of them changed places.
  const Catalog a = catalog_of({{"h.0.foo.weight", {8, 8}, 1},
                                {"h.1.foo.weight", {8, 8}, 2},
                                {"h.2.foo.weight", {8, 8}, 3}});
  const Catalog b = catalog_of(
      {{"zz/u/vars/0", {8, 8}, 2}, {"zz/u_1/vars/0", {8, 8}, 1}, {"zz/u_2/vars/0", {8, 8}, 3}});
  EXPECT_EQ(pairs_of(a, b), (Names{"h.0.foo.weight=zz/u/vars/0", "h.1.foo.weight=zz/u_1/vars/0",
                                   "h.2.foo.weight=zz/u_2/vars/0"}));
}

TEST(Exchanged, BlocksThatAreCountedFromTheOtherEndStayPairedByValue) {
  const Catalog a = catalog_of({{"up_blocks.0.foo.weight", {8, 8}, 1},
                                {"up_blocks.1.foo.weight", {8, 8}, 2},
                                {"up_blocks.2.foo.weight", {8, 8}, 3}});
  const Catalog b = catalog_of(
      {{"zz.0.u.kernel", {8, 8}, 3}, {"zz.1.u.kernel", {8, 8}, 2}, {"zz.2.u.kernel", {8, 8}, 1}});
  EXPECT_EQ(pairs_of(a, b),
            (Names{"up_blocks.0.foo.weight=zz.2.u.kernel", "up_blocks.1.foo.weight=zz.1.u.kernel",
                   "up_blocks.2.foo.weight=zz.0.u.kernel"}));
}

TEST(Exchanged, AReversalThatOtherTensorsOfTheBlocksContradictIsAnExchange) {
  std::vector<Named> a, b;
  Names expected;
  const unsigned held[] = {2, 1, 0};
  for (unsigned i = 0; i < 3; ++i) {
    a.push_back({fmt::format("list.{}.weight", i), {8, 8}, i});
    b.push_back({fmt::format("zz.{}.u.kernel", i), {8, 8}, i});
    a.push_back({fmt::format("list.{}.bias", i), {64}, 10 + i});
    b.push_back({fmt::format("zz.{}.u.offset", i), {64}, 10 + held[i]});
  }
  for (std::size_t i = 0; i < a.size(); ++i) expected.push_back(a[i].name + "=" + b[i].name);
  std::ranges::sort(expected);
  EXPECT_EQ(pairs_of(catalog_of(a), catalog_of(b)), expected);
}

TEST(Exchanged, WhatOnlySomeBlocksHaveIsCountedLikeTheRest) {
  // Blocks from the other end; the first of them has no shortcut.
  const Catalog a = catalog_of({{"up_blocks.0.foo.weight", {8, 8}, 1},
                                {"up_blocks.1.foo.weight", {8, 8}, 2},
                                {"up_blocks.2.foo.weight", {8, 8}, 3},
                                {"up_blocks.1.short.weight", {6, 8}, 4},
                                {"up_blocks.2.short.weight", {6, 8}, 5}});
  const Catalog b = catalog_of({{"zz.0.u.kernel", {8, 8}, 3},
                                {"zz.1.u.kernel", {8, 8}, 2},
                                {"zz.2.u.kernel", {8, 8}, 1},
                                {"zz.0.nin.kernel", {6, 8}, 5},
                                {"zz.1.nin.kernel", {6, 8}, 4}});
  EXPECT_EQ(
      pairs_of(a, b),
      (Names{"up_blocks.0.foo.weight=zz.2.u.kernel", "up_blocks.1.foo.weight=zz.1.u.kernel",
             "up_blocks.1.short.weight=zz.1.nin.kernel", "up_blocks.2.foo.weight=zz.0.u.kernel",
             "up_blocks.2.short.weight=zz.0.nin.kernel"}));
}

TEST(Exchanged, MostTensorsOfOneKindAreOutvotedByTheOtherKinds) {
  // Three kinds tell how layers are counted; of the fourth, two of three changed places.
  std::vector<Named> a, b;
  const unsigned held[] = {2, 1, 0};
  Names expected;
  for (unsigned i = 0; i < 3; ++i) {
    unsigned kind = 0;
    for (const auto& [of_a, of_b] : {std::pair{"foo", "u"}, {"bar", "v"}, {"baz", "w"}}) {
      const uint64_t rows = 6 + 2 * kind;
      a.push_back({fmt::format("h.{}.{}.weight", i, of_a), {rows, 8}, 10 * kind + i});
      b.push_back({fmt::format("zz.{}.{}.kernel", i, of_b), {rows, 8}, 10 * kind + i});
      expected.push_back(a.back().name + "=" + b.back().name);
      ++kind;
    }
    a.push_back({fmt::format("h.{}.norm.weight", i), {64}, 90 + i});
    b.push_back({fmt::format("zz.{}.g.scale", i), {64}, 90 + held[i]});
    expected.push_back(a.back().name + "=" + b.back().name);
  }
  std::ranges::sort(expected);
  EXPECT_EQ(pairs_of(catalog_of(a), catalog_of(b)), expected);
}

TEST(Exchanged, BlocksThatAreCountedThroughArePairedInOrder) {
  // Two blocks of three are six in B, and two of them changed places.
  std::vector<Named> a, b;
  const unsigned held[] = {0, 2, 1, 3, 4, 5};
  for (unsigned i = 0; i < 6; ++i) {
    a.push_back({fmt::format("up.{}.res.{}.foo.weight", i / 3, i % 3), {8, 8}, i});
    b.push_back({fmt::format("zz.{}.0.u.kernel", i), {8, 8}, held[i]});
  }
  EXPECT_EQ(
      pairs_of(catalog_of(a), catalog_of(b)),
      (Names{"up.0.res.0.foo.weight=zz.0.0.u.kernel", "up.0.res.1.foo.weight=zz.1.0.u.kernel",
             "up.0.res.2.foo.weight=zz.2.0.u.kernel", "up.1.res.0.foo.weight=zz.3.0.u.kernel",
             "up.1.res.1.foo.weight=zz.4.0.u.kernel", "up.1.res.2.foo.weight=zz.5.0.u.kernel"}));
}

TEST(Checkpoint, IsToldByTheNamesOfOneSide) {
  const Catalog weights = catalog_of(Names{"h.0.foo.weight", "h.0.foo.bias", "h.1.foo.weight"});
  const Catalog numbered = catalog_of(Names{"val_1", "val_2"});
  const Catalog dump = catalog_of(Names{"0_query", "0_key", "1_query"});
  EXPECT_TRUE(are_checkpoints(weights, numbered));
  EXPECT_FALSE(are_checkpoints(dump, dump));
}

}  // namespace
}  // namespace tensordiff
