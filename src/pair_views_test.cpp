#include "pair_views.h"

#include "align/view.h"
#include "diagnose/rank_order.h"
#include "tensor/test_views.h"
#include "test_compare.h"

namespace tensordiff {
namespace {

// Two heads of keys on four ranks, beside queries that each rank has a part of.
Report compare(const std::vector<uint64_t>& heads) {
  const View key = noise_view({16, 24}, 1);
  const View query = noise_view({32, 24}, 2);
  Catalog whole, ranks;
  whole.tensors.push_back({"layers.0.self_attn.k_proj.weight", key, ""});
  whole.tensors.push_back({"layers.0.self_attn.q_proj.weight", query, ""});
  for (uint64_t rank = 0; rank < heads.size(); ++rank) {
    const std::string at = fmt::format("rank_{}/layers.0.self_attn.", rank);
    const View part = narrowed(key, 0, 8 * heads[rank], 8);
    const View own = narrowed(query, 0, 8 * rank, 8);
    ranks.tensors.push_back({at + "k_proj.weight", stored_as(part, part.shape), ""});
    ranks.tensors.push_back({at + "q_proj.weight", stored_as(own, own.shape), ""});
  }
  return compare_catalogs(std::move(whole), std::move(ranks));
}

TEST(RankOrder, IsToldWhereNeighboursShouldShare) {
  const Report report = compare({0, 1, 0, 1});
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings[0].code, "block_permutation");
  EXPECT_EQ(report.findings[0].explanation,
            "the ranks of b hold other pieces than theirs: [0, 1, 0, 1] where [0, 0, 1, 1] belong, "
            "and put together in that order they fit");
}

TEST(RankOrder, IsNotToldWhereNeighboursDoShare) {
  const Report report = compare({0, 0, 1, 1});
  EXPECT_TRUE(report.findings.empty());
  for (const PairRow& row : report.pairs) EXPECT_EQ(row.comparison.status, Status::equal);
}

// Comparing shapes alone reads no values, not even to learn of ranks.
TEST(Sides, LearnOfRanksFromValuesUnlessOnlyShapesCount) {
  Catalog whole, ranks;
  const View weight = noise_view({8, 4}, 1);
  whole.tensors.push_back({"w", weight, ""});
  const View halves[] = {narrowed(weight, 0, 0, 4), narrowed(weight, 0, 4, 4)};
  ranks.tensors.push_back({"w", halves[0], "", {halves[0], halves[1]}});
  Matching matching;
  matching.pairs.emplace_back();
  Request request;
  EXPECT_TRUE(sides_of(whole, ranks, matching, request).all_ranks);
  request.shape_only = true;
  EXPECT_FALSE(sides_of(whole, ranks, matching, request).all_ranks);
  // Two that hold the same are copies, whatever their shape.
  ranks.tensors[0].shards[1] = halves[0];
  EXPECT_FALSE(sides_of(whole, ranks, matching, Request()).all_ranks);
}

// Heads [heads, tokens, dim] as [tokens, heads, dim].
View by_token(const View& heads) { return permuted(heads, std::vector<uint64_t>{1, 0, 2}); }

// Three layers of 3 heads; b has of the second what `wrong` makes of them, all flattened.
template <class Wrong>
void expect_like_other_layers(std::string_view stage, uint64_t tokens, const Wrong& wrong) {
  Catalog a, b;
  for (unsigned layer = 0; layer < 3; ++layer) {
    const View heads = noise_view({3, tokens, 4}, layer + 1);
    const std::string name = fmt::format("{}_{}", layer, stage);
    a.tensors.push_back({name, heads, ""});
    b.tensors.push_back(
        {name, stored_as(layer == 1 ? wrong(heads) : by_token(heads), {tokens, 12}), ""});
  }
  const Report report = compare_catalogs(std::move(a), std::move(b));
  ASSERT_EQ(report.pairs.size(), 3U);
  EXPECT_EQ(report.pairs[0].comparison.status, Status::equal);
  EXPECT_EQ(report.pairs[1].comparison.status, Status::different);
  EXPECT_EQ(report.pairs[1].steps, report.pairs[0].steps);
  EXPECT_FALSE(report.pairs[1].steps.empty());
}

// Where as many tokens are there as features, shapes leave it open which axis is which, and values
// do where heads changed places. The same step of other layers tells.
TEST(AlignedViews, AreLikeThoseOfOtherLayers) {
  expect_like_other_layers("value_final", 12, [](const View& heads) {
    const View right = by_token(heads);
    const View parts[] = {narrowed(right, 1, 1, 1), narrowed(right, 1, 0, 1),
                          narrowed(right, 1, 2, 1)};
    return concatenated(parts, 1);
  });
}

// Stored as another layer's would be after a transpose: the same numbers in the same order, and a
// mistake all the same.
TEST(AlignedViews, AreNotThoseOfOneLayerAlone) {
  expect_like_other_layers("post_attn", 10, [](const View& heads) { return heads; });
}

// No layer tells of the queries, of which nothing agrees; keys of fewer heads do.
TEST(AlignedViews, AreLikeThoseOfOtherSteps) {
  Catalog a, b;
  for (unsigned layer = 0; layer < 2; ++layer) {
    for (const uint64_t heads : {2, 3}) {
      const std::string name = fmt::format("{}_{}", layer, heads == 2 ? "key" : "query");
      const View of_a = noise_view({heads, 12, 12}, layer + 1);
      const View of_b = heads == 2 ? of_a : noise_view({heads, 12, 12}, layer + 9);
      a.tensors.push_back({name, of_a, ""});
      b.tensors.push_back({name, stored_as(by_token(of_b), {12, heads * 12}), ""});
    }
  }
  const Report report = compare_catalogs(std::move(a), std::move(b));
  ASSERT_EQ(report.pairs.size(), 4U);
  for (const PairRow& row : report.pairs) {
    ASSERT_FALSE(row.steps.empty());
    EXPECT_EQ(row.steps[0], report.pairs[0].steps[0]) << row.index;
  }
}

}  // namespace
}  // namespace tensordiff
