#include "layout/pair_views.h"

#include <gtest/gtest.h>

#include "align/evidence.h"
#include "align/view.h"
#include "naming/naming.h"
#include "tensor/test_views.h"

namespace tensordiff {
namespace {

// Comparing shapes alone reads no values, not even to learn of ranks.
TEST(Sides, LearnOfRanksFromValuesUnlessOnlyShapesCount) {
  Catalog whole, ranks;
  const View weight = noise_view({8, 4}, 1);
  whole.tensors.push_back({"w", weight, ""});
  const View halves[] = {narrowed(weight, 0, 0, 4), narrowed(weight, 0, 4, 4)};
  ranks.tensors.push_back({"w", halves[0], "", {halves[0], halves[1]}});
  Matching matching;
  matching.pairs.emplace_back();
  LayoutOptions options;
  EXPECT_TRUE(sides_of(whole, ranks, matching, options).all_ranks);
  options.read_values = false;
  EXPECT_FALSE(sides_of(whole, ranks, matching, options).all_ranks);
  // Two that hold the same are copies, whatever their shape.
  ranks.tensors[0].shards[1] = halves[0];
  EXPECT_FALSE(sides_of(whole, ranks, matching, LayoutOptions()).all_ranks);
}

// All pairs of two dumps, in one layout.
std::vector<AlignedPair> views_of(const Catalog& a, const Catalog& b) {
  const Result<Matching> matching = match(a, b);
  EXPECT_TRUE(matching.ok());
  const Sides sides = sides_of(a, b, matching.value(), {});
  std::vector<AlignedPair> views;
  for (const Pair& pair : matching.value().pairs) {
    Result<AlignedPair> aligned = aligned_views(sides, pair);
    EXPECT_TRUE(aligned.ok());
    if (aligned.ok()) views.push_back(std::move(aligned).value());
  }
  return views;
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
  const std::vector<AlignedPair> pairs = views_of(a, b);
  ASSERT_EQ(pairs.size(), 3U);
  EXPECT_TRUE(hold_same_values(pairs[0]));
  EXPECT_FALSE(hold_same_values(pairs[1]));
  EXPECT_EQ(pairs[1].steps, pairs[0].steps);
  EXPECT_FALSE(pairs[1].steps.empty());
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

// The stack of one layer holds other values: that the others are laid out alike tells its layout,
// though only a part of it is compared.
TEST(AlignedViews, OfAPartAreLikeThoseOfOtherLayers) {
  Catalog a, b;
  for (unsigned layer = 0; layer < 3; ++layer) {
    const View stack = noise_view({2, 6, 5, 4}, layer + 1);
    const View first = stored_as(narrowed(stack, 0, 0, 1), {1, 6, 5, 4});
    const std::string name = fmt::format("{}_query", layer);
    a.tensors.push_back({name, stack, ""});
    b.tensors.push_back({name, layer == 1 ? noise_view({1, 6, 5, 4}, 9) : first, ""});
  }
  const std::vector<AlignedPair> pairs = views_of(a, b);
  ASSERT_EQ(pairs.size(), 3U);
  EXPECT_FALSE(hold_same_values(pairs[1]));
  EXPECT_EQ(pairs[1].steps, pairs[0].steps);
  EXPECT_EQ(pairs[1].notes, (LayoutNotes{{LayoutNote::Kind::one_of_stack, 'a', 0, 2, 1}}));
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
  const std::vector<AlignedPair> pairs = views_of(a, b);
  ASSERT_EQ(pairs.size(), 4U);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    ASSERT_FALSE(pairs[i].steps.empty());
    EXPECT_EQ(pairs[i].steps[0], pairs[0].steps[0]) << i;
  }
}

// Converters pad at the end, but fairseq's position tables begin with two rows of no position.
TEST(AlignedViews, LeaveOutRowsInFrontOfPositionsOnly) {
  const auto hold_same = [](const std::string& name, uint64_t more) {
    Catalog a, b;
    const View table = noise_view({32, 8}, 1);
    a.tensors.push_back({name, table, ""});
    b.tensors.push_back({name, stored_as(narrowed(table, 0, more, 32 - more), {32 - more, 8}), ""});
    read_places(a);
    read_places(b);
    Matching matching;
    matching.pairs.emplace_back();
    Sides sides = sides_of(a, b, matching, {});
    const Conversion conversion;
    sides.conversion = &conversion;
    const Result<AlignedPair> aligned = aligned_views(sides, matching.pairs[0]);
    return aligned.ok() && hold_same_values(aligned.value());
  };
  EXPECT_TRUE(hold_same("embeddings.position_embeddings.weight", 2));
  EXPECT_FALSE(hold_same("embeddings.position_embeddings.weight", 1));
  EXPECT_FALSE(hold_same("model.embed_tokens.weight", 2));
}

TEST(AlignedViews, CountTheRowsThatATableWasPaddedWithInFront) {
  const View table = noise_view({32, 8}, 1);
  Catalog a, b;
  a.tensors.push_back({"embed.weight", stored_as(narrowed(table, 0, 3, 29), {29, 8}), ""});
  b.tensors.push_back({"embed.weight", table, ""});
  Matching matching;
  matching.pairs.emplace_back();
  Sides sides = sides_of(a, b, matching, {});
  EXPECT_FALSE(shifted_rows(sides, matching.pairs[0]));  // No two checkpoints.
  const Conversion conversion;
  sides.conversion = &conversion;
  const std::optional<Shifted> shifted = shifted_rows(sides, matching.pairs[0]);
  ASSERT_TRUE(shifted);
  EXPECT_EQ(shifted->side, 'b');
  EXPECT_EQ(shifted->rows, 3U);
  a.tensors[0].view = stored_as(narrowed(table, 0, 0, 29), {29, 8});
  EXPECT_FALSE(shifted_rows(sides, matching.pairs[0]));
}

}  // namespace
}  // namespace tensordiff
