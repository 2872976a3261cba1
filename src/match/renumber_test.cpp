#include "match/renumber.h"

#include <fmt/format.h>

#include "match/test_catalogs.h"

namespace tensordiff {
namespace {

struct Found {
  Names pairs, notes;
};

Found paired(const std::vector<Named>& a, const std::vector<Named>& b) {
  const Catalog left = catalog_of(a), right = catalog_of(b);
  const Result<Matching> matching = match(left, right);
  return {pairs_text(matching.value(), left, right), matching.value().notes};
}

const Shape kShape = {20, 30};

TEST(Renumber, FindsLayersThatAreCountedFromElsewhere) {
  // By their values: layer 0 of b is layer 4 of a.
  const Found found = paired({{"model.layers.3.mlp.up_proj.weight", kShape, 1},
                              {"model.layers.4.mlp.up_proj.weight", kShape, 2}},
                             {{"blk.0.ffn_up.weight", kShape, 2}});
  EXPECT_EQ(found.pairs, Names{"model.layers.4.mlp.up_proj.weight=blk.0.ffn_up.weight"});
  EXPECT_EQ(found.notes,
            Names{"layer 0 of B is compared with layer 4 of A: their values agree best"});
}

TEST(Renumber, TakesLayersInOrderWhereValuesDoNotTell) {
  const Found found = paired({{"net.3.foo", kShape, 1}, {"net.4.foo", kShape, 2}},
                             {{"net.0.foo", kShape, 11}, {"net.1.foo", kShape, 12}});
  EXPECT_EQ(found.pairs, (Names{"net.3.foo=net.0.foo", "net.4.foo=net.1.foo"}));
  EXPECT_EQ(found.notes,
            Names{"layers 0 to 1 of B are compared with layers 3 to 4 of A: no numbers in common, "
                  "and the values do not decide: paired by order"});
}

TEST(Renumber, LeavesLayersThatOverlapAlone) {
  const Found found =
      paired({{"net.3.foo", kShape, 1}, {"net.4.foo", kShape, 2}, {"net.5.foo", kShape, 3}},
             {{"net.4.foo", kShape, 2}, {"net.9.foo", kShape, 9}});
  EXPECT_EQ(found.pairs, Names{"net.4.foo=net.4.foo"});
  EXPECT_EQ(found.notes, Names{});
}

// Layers `first_a` to `first_a` + 2 of A, and as many of B from `first_b` on; `shift` says which
// layer of A the values of a layer of B are those of.
Found shifted(unsigned first_a, unsigned first_b, unsigned shift) {
  std::vector<Named> a, b;
  for (unsigned i = 0; i < 3; ++i) {
    a.push_back({fmt::format("model.layers.{}.mlp.up_proj.weight", first_a + i), kShape, i});
    b.push_back({fmt::format("model.layers.{}.mlp.up_proj.weight", first_b + i), kShape,
                 first_b + i - shift});
  }
  return paired(a, b);
}

TEST(Renumber, FollowsValuesWhereACheckpointCountsFromElsewhereOn) {
  const Found found = shifted(0, 1, 1);
  EXPECT_EQ(found.pairs,
            (Names{"model.layers.0.mlp.up_proj.weight=model.layers.1.mlp.up_proj.weight",
                   "model.layers.1.mlp.up_proj.weight=model.layers.2.mlp.up_proj.weight",
                   "model.layers.2.mlp.up_proj.weight=model.layers.3.mlp.up_proj.weight"}));
  EXPECT_EQ(found.notes, Names{"layers 1 to 3 of B are compared with layers 0 to 2 of A: their "
                               "values agree best"});
}

TEST(Renumber, KeepsNumbersWhereValuesDo) {
  const Found found = shifted(0, 1, 0);
  ASSERT_EQ(found.pairs.size(), 2U);
  EXPECT_EQ(found.pairs[0], "model.layers.1.mlp.up_proj.weight=model.layers.1.mlp.up_proj.weight");
}

TEST(Renumber, FollowsFusedAndOtherPartsOfALayer) {
  const Found found = paired({{"h.7.attn.c_attn", {20, 30}, 1}, {"h.7.ln_1", kShape, 2}},
                             {{"layers.0.q", {20, 10}, 11},
                              {"layers.0.k", {20, 10}, 12},
                              {"layers.0.v", {20, 10}, 13},
                              {"layers.0.attn_norm", kShape, 2}});
  EXPECT_EQ(found.pairs.size(), 4U);
}

TEST(Renumber, PairsCallsThatAreCountedFromElsewhere) {
  const Found found = paired({{"0_query_1", kShape, 1}, {"0_query_2", kShape, 2}},
                             {{"0_query_0", kShape, 1}, {"0_query_3", kShape, 2}});
  EXPECT_EQ(found.pairs, (Names{"0_query_1=0_query_0", "0_query_2=0_query_3"}));
  EXPECT_EQ(found.notes,
            (Names{"call 0 of B is compared with call 1 of A: their values agree best",
                   "call 3 of B is compared with call 2 of A: their values agree best"}));
  const Found steps = paired({{"step_5/mlp.out", kShape, 1}, {"step_6/mlp.out", kShape, 2}},
                             {{"step_0/mlp.out", kShape, 1}, {"step_1/mlp.out", kShape, 2}});
  EXPECT_EQ(steps.pairs, (Names{"step_5/mlp.out=step_0/mlp.out", "step_6/mlp.out=step_1/mlp.out"}));
}

TEST(Renumber, FindsTheCallThatOneSideKept) {
  const std::vector<Named> one = {{"0_query", kShape, 2}, {"0_key", kShape, 12}};
  const std::vector<Named> calls = {{"0_query_0", kShape, 1},
                                    {"0_query_1", kShape, 2},
                                    {"0_key_0", kShape, 11},
                                    {"0_key_1", kShape, 12}};
  const Found found = paired(one, calls);
  EXPECT_EQ(found.pairs, (Names{"0_query=0_query_1", "0_key=0_key_1"}));
  EXPECT_EQ(found.notes,
            Names{"call 1 of B is compared with call 0 of A: their values agree best"});
  EXPECT_EQ(paired(calls, one).pairs, (Names{"0_query_1=0_query", "0_key_1=0_key"}));
  // The first, where values do not tell; none, where they are no calls of the same thing.
  EXPECT_EQ(paired({{"out", kShape, 5}}, {{"out_0", kShape, 1}, {"out_1", kShape, 2}}).pairs,
            Names{"out=out_0"});
  EXPECT_EQ(paired({{"conv", {4, 4}, 5}}, {{"conv_1", {8, 4}, 1}, {"conv_2", {4, 4}, 2}}).pairs,
            Names{});
}

TEST(Renumber, KeepsCallsThatBothSidesHave) {
  const std::vector<Named> calls = {{"0_query_0", kShape, 1},
                                    {"0_query_1", kShape, 2},
                                    {"0_query_10", kShape, 3},
                                    {"0_key_2", kShape, 4}};
  const Found found = paired(calls, calls);
  EXPECT_EQ(found.pairs, (Names{"0_query_0=0_query_0", "0_query_1=0_query_1",
                                "0_query_10=0_query_10", "0_key_2=0_key_2"}));
}

TEST(Renumber, ReadsNoValuesWhereItMustNot) {
  const Catalog a = catalog_of({{"net.3.foo", kShape, 1}, {"net.4.foo", kShape, 2}});
  const Catalog b = catalog_of({{"net.0.foo", kShape, 2}, {"net.1.foo", kShape, 1}});
  MatchOptions options;
  options.read_values = false;
  EXPECT_EQ(renumber(a, b, options).side_b.names, (Names{"net.3.foo", "net.4.foo"}));
  EXPECT_EQ(renumber(a, b, {}).side_b.names, (Names{"net.4.foo", "net.3.foo"}));
}

}  // namespace
}  // namespace tensordiff
