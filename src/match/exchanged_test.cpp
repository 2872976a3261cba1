#include "match/exchanged.h"

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

TEST(Checkpoint, IsToldByTheNamesOfOneSide) {
  const Catalog weights = catalog_of(Names{"h.0.foo.weight", "h.0.foo.bias", "h.1.foo.weight"});
  const Catalog numbered = catalog_of(Names{"val_1", "val_2"});
  const Catalog dump = catalog_of(Names{"0_query", "0_key", "1_query"});
  EXPECT_TRUE(are_checkpoints(weights, numbered));
  EXPECT_FALSE(are_checkpoints(dump, dump));
}

}  // namespace
}  // namespace tensordiff
