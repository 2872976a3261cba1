#include "align/whole.h"

#include "align/cut.h"
#include "align/view.h"
#include "tensor/test_views.h"

namespace tensordiff {
namespace {

// The pieces of a view along an axis, stored each for itself.
std::vector<View> pieces(const View& view, std::size_t axis, const std::vector<uint64_t>& sizes) {
  std::vector<View> result;
  uint64_t first = 0;
  for (const uint64_t size : sizes) {
    const View piece = narrowed(view, axis, first, size);
    result.push_back(stored_as(piece, piece.shape));
    first += size;
  }
  return result;
}

AlignedPair aligned(const Operand& a, const Operand& b) {
  Result<AlignedPair> pair = align(a, b);
  EXPECT_TRUE(pair.ok()) << (pair.ok() ? "" : pair.error().message());
  return pair.ok() ? std::move(pair).value() : AlignedPair{};
}

void expect_same(const AlignedPair& pair) { EXPECT_EQ(values_of(pair.a), values_of(pair.b)); }

TEST(Whole, ConcatenatesAlongAnyAxis) {
  const View whole = noise_view({6, 8, 4}, 1);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const AlignedPair pair =
        aligned({{whole}}, {pieces(whole, axis, std::vector(2, whole.shape[axis] / 2))});
    expect_same(pair);
    EXPECT_EQ(pair.steps, (Plan{{'b', Op::concat, {axis, 2, 1}}}));
  }
}

TEST(Whole, ConcatenatesUnevenPieces) {
  const View whole = noise_view({7, 4}, 1);
  expect_same(aligned({pieces(whole, 0, {3, 2, 2})}, {{whole}}));
}

TEST(Whole, GathersOtherNumbersOfRanksOnBothSides) {
  const View whole = noise_view({5, 12}, 1);
  expect_same(aligned({pieces(whole, 1, {3, 3, 3, 3})}, {pieces(whole, 1, {6, 6})}));
}

TEST(Whole, TakesCopiesOnce) {
  const View whole = noise_view({5, 8}, 1);
  const AlignedPair same = aligned({{whole}}, {{whole, whole, whole}});
  expect_same(same);
  EXPECT_EQ(same.steps, (Plan{{'b', Op::replica, {3}}}));
  EXPECT_EQ(same.copies.size(), 2U);

  // Two heads of keys on four ranks.
  const std::vector<View> heads = pieces(whole, 1, {4, 4});
  const AlignedPair grouped = aligned({{whole}}, {{heads[0], heads[0], heads[1], heads[1]}});
  expect_same(grouped);
  EXPECT_EQ(grouped.steps, (Plan{{'b', Op::concat, {1, 4, 2}}}));
  ASSERT_EQ(grouped.copies.size(), 2U);
  EXPECT_EQ(grouped.copies[1].rank, 3U);
  EXPECT_EQ(grouped.copies[1].like, 2U);
}

TEST(Whole, KnowsACopyThatIsOutOfStep) {
  const View whole = noise_view({5, 8}, 1);
  for (const std::vector<View>& ranks :
       {std::vector{whole, noise_view({5, 8}, 2)}, std::vector{noise_view({5, 8}, 2), whole}}) {
    const AlignedPair pair = aligned({{whole}}, {ranks});
    EXPECT_EQ(pair.steps, (Plan{{'b', Op::replica, {2}}}));
    EXPECT_EQ(pair.copies.size(), 1U);
  }
}

TEST(Whole, AddsSummandsUp) {
  const View x = noise_view({5, 8}, 1), y = noise_view({5, 8}, 2);
  std::vector<float> sum = values_of(x);
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values_of(y)[i];
  const AlignedPair pair = aligned({{f32_view({5, 8}, sum)}}, {{x, y}});
  expect_same(pair);
  EXPECT_EQ(pair.steps, (Plan{{'b', Op::sum, {2}}}));
}

TEST(Whole, PutsPartsOfFusedRanksTogether) {
  // [q|k|v] with twice as many queries, over two ranks.
  const View whole = noise_view({6, 16}, 1);
  const std::vector<View> blocks = pieces(whole, 1, {4, 4, 2, 2, 2, 2});
  const View first = concatenated(std::vector{blocks[0], blocks[2], blocks[4]}, 1);
  const View second = concatenated(std::vector{blocks[1], blocks[3], blocks[5]}, 1);
  const AlignedPair pair =
      aligned({{whole}}, {{stored_as(first, {6, 8}), stored_as(second, {6, 8})}});
  expect_same(pair);
  EXPECT_EQ(pair.steps, (Plan{{'b', Op::concat_parts, {1, 2, 4, 2, 2}}}));
}

TEST(Whole, NeverChangesTheOrderOfRanks) {
  const View whole = noise_view({6, 8}, 1);
  std::vector<View> ranks = pieces(whole, 1, {4, 4});
  std::swap(ranks[0], ranks[1]);
  const AlignedPair pair = aligned({{whole}}, {ranks});
  EXPECT_NE(values_of(pair.a), values_of(pair.b));
  EXPECT_EQ(pair.notes, (LayoutNotes{{LayoutNote::Kind::not_confirmed}}));
  const AlignedPair both = aligned({pieces(whole, 1, {4, 4})}, {ranks});
  EXPECT_NE(values_of(both.a), values_of(both.b));
}

// Rows of a fused tensor come first; a tensor of its own is not cut.
TEST(Whole, IsCutOutOfWhatItIsFusedWith) {
  const View fused = noise_view({6, 16}, 1);
  EXPECT_TRUE(cuts_of('a', {{fused}})[0].steps.empty());
  const std::vector<Cut> cuts = cuts_of('a', {{fused}, Section{"", {64, 32}, 1}});
  ASSERT_FALSE(cuts.empty());
  EXPECT_EQ(cuts[0].steps, (Plan{{'a', Op::select, {0, 4, 2}}}));
  EXPECT_EQ(cuts[0].shards[0].shape, (Shape{2, 16}));
}

TEST(Whole, TakesOneSectionOfAFusedTensor) {
  const View fused = noise_view({6, 16}, 1);
  const std::vector<View> parts = pieces(fused, 1, {8, 4, 4});
  const std::vector<uint64_t> elements = {48, 24, 24};
  for (std::size_t i = 0; i < 3; ++i)
    expect_same(aligned({{fused}, Section{"", elements, i}}, {{parts[i]}}));
  // Stored the other way round, as linear layers of two frameworks do.
  const View turned = permuted(parts[1], std::vector<uint64_t>{1, 0});
  expect_same(aligned({{fused}, Section{"", elements, 1}}, {{stored_as(turned, turned.shape)}}));
}

TEST(Whole, TakesASectionThatIsInterleavedByHeads) {
  // Two heads, each with its own query, key and value of 3 rows.
  const View fused = noise_view({18, 5}, 1);
  const View by_head = split(fused, 0, std::vector<uint64_t>{2, 3, 3});
  for (uint64_t i = 0; i < 3; ++i) {
    const View part = narrowed(by_head, 1, i, 1);
    const std::vector<uint64_t> elements = {30, 30, 30};
    expect_same(aligned({{fused}, Section{"", elements, i}}, {{stored_as(part, {6, 5})}}));
  }
}

// As Megatron has it: each rank has some heads with all that is theirs.
TEST(Whole, TakesASectionThatIsInterleavedByHeadsOnRanks) {
  const View fused = noise_view({36, 5}, 1);
  const View by_head = split(fused, 0, std::vector<uint64_t>{4, 3, 3});
  const Operand ranks{pieces(fused, 0, {18, 18}), Section{"", {60, 60, 60}, 1}};
  expect_same(aligned({{stored_as(narrowed(by_head, 1, 1, 1), {12, 5})}}, ranks));
}

TEST(Whole, TakesASectionOfOneOfSeveralExperts) {
  const View fused = noise_view({3, 8, 5}, 1);  // Gate and up of three experts.
  const std::vector<uint64_t> elements(6, 20);
  for (uint64_t i = 0; i < 6; ++i) {
    const View part = narrowed(narrowed(fused, 0, i / 2, 1), 1, i % 2 * 4, 4);
    expect_same(aligned({{stored_as(part, {4, 5})}}, {{fused}, Section{"", elements, i}}));
  }
}

// Two data parallel ranks for each tensor parallel one, as ranks.h puts them side by side.
TEST(Whole, KnowsCopiesOfRanks) {
  const View whole = noise_view({12, 8}, 1);
  const std::vector<View> halves = pieces(whole, 1, {4, 4});
  const AlignedPair pair = aligned({{whole}}, {{halves[0], halves[0], halves[1], halves[1]}});
  expect_same(pair);
  EXPECT_EQ(pair.copies.size(), 2U);

  // [gate|up] on each of the two.
  const std::vector<View> quarters = pieces(whole, 0, {3, 3, 3, 3});
  const View first = stored_as(concatenated(std::vector{quarters[0], quarters[2]}, 0), {6, 8});
  const View second = stored_as(concatenated(std::vector{quarters[1], quarters[3]}, 0), {6, 8});
  const AlignedPair fused = aligned({{whole}}, {{first, first, second, second}});
  expect_same(fused);
  EXPECT_EQ(fused.copies.size(), 2U);
  EXPECT_EQ(fused.steps, (Plan{{'b', Op::replica, {2}}, {'b', Op::concat_parts, {0, 2, 3, 3}}}));
}

TEST(Whole, PutsPiecesOfABatchTogetherThatArePiecesOfHeads) {
  const View whole = noise_view({6, 4, 10}, 1);
  std::vector<View> ranks;
  for (const View& heads : pieces(whole, 2, {5, 5}))
    for (const View& batch : pieces(heads, 0, {3, 3})) ranks.push_back(batch);
  const AlignedPair pair = aligned({{whole}}, {ranks});
  expect_same(pair);
  EXPECT_EQ(pair.a.shape, whole.shape);
  EXPECT_EQ(pair.steps, (Plan{{'b', Op::concat, {0, 2, 1}}, {'b', Op::concat, {2, 2, 1}}}));
}

TEST(Whole, PutsPiecesOfABatchTogetherOfWhichThereAreCopies) {
  const View whole = noise_view({6, 4, 10}, 1);
  const std::vector<View> half = pieces(whole, 0, {3, 3});
  const AlignedPair pair = aligned({{whole}}, {{half[0], half[1], half[0], half[1]}});
  expect_same(pair);
  EXPECT_EQ(pair.steps, (Plan{{'b', Op::concat, {0, 2, 1}}, {'b', Op::replica, {2}}}));
  EXPECT_EQ(pair.copies.size(), 1U);
}

// With [gate|up] on each rank, which groups of ranks repeat.
TEST(Whole, PutsPartsTogetherOfWhichGroupsHaveCopies) {
  const View whole = noise_view({12, 8}, 1);
  const std::vector<View> quarters = pieces(whole, 0, {3, 3, 3, 3});
  const View first = stored_as(concatenated(std::vector{quarters[0], quarters[2]}, 0), {6, 8});
  const View second = stored_as(concatenated(std::vector{quarters[1], quarters[3]}, 0), {6, 8});
  const std::vector<View> ranks = {first, second, first, second};
  expect_same(aligned({{whole}}, {ranks, std::nullopt, {}}));
  // A name that says otherwise, or other tensors that need all ranks, rule that out.
  for (const RankFacts facts : {RankFacts{true, false}, RankFacts{false, true}}) {
    const AlignedPair pair = aligned({{whole}}, {ranks, std::nullopt, facts});
    EXPECT_TRUE(pair.a.shape != whole.shape || values_of(pair.a) != values_of(pair.b));
  }
}

TEST(Whole, RepeatsNoGroupWhereAllRanksHavePieces) {
  const View whole = noise_view({6, 4, 10}, 1);
  const std::vector<View> half = pieces(whole, 0, {3, 3});
  const AlignedPair pair =
      aligned({{whole}}, {{half[0], half[1], half[0], half[1]}, std::nullopt, {true, false}});
  EXPECT_NE(values_of(pair.a), values_of(pair.b));
}

// Rank against rank: nothing is turned that has the same shape on both sides.
TEST(Whole, ComparesEqualShardsAsTheyAre) {
  const View whole = noise_view({24, 6}, 1);
  std::vector<View> turned;
  const std::vector<View> ranks = pieces(whole, 0, {6, 6, 6, 6});
  for (const View& rank : ranks)
    turned.push_back(stored_as(permuted(rank, std::vector<uint64_t>{1, 0}), {6, 6}));
  const AlignedPair pair = aligned({ranks}, {turned});
  EXPECT_NE(values_of(pair.a), values_of(pair.b));
}

// Square shards fit both ways; which is meant, the other tensors tell.
TEST(Whole, TurnsNoSquareShardsWhereOthersAreNotTurned) {
  const View whole = noise_view({24, 6}, 1);
  std::vector<View> turned;
  for (const View& rank : pieces(whole, 0, {6, 6, 6, 6}))
    turned.push_back(stored_as(permuted(rank, std::vector<uint64_t>{1, 0}), {6, 6}));
  const AlignedPair either = aligned({{whole}}, {turned});
  expect_same(either);
  EXPECT_EQ(either.notes, (LayoutNotes{{LayoutNote::Kind::other_order}}));
  const AlignedPair straight = aligned({{whole}}, {turned, std::nullopt, {true, false}});
  EXPECT_NE(values_of(straight.a), values_of(straight.b));
}

// With data parallel copies on one side: pieces in rows here and in columns there, sums in which
// the copies count twice, and the first ranks alone would all agree.
TEST(Whole, ReadsNothingIntoRanksThatChangedPlacesBesideCopies) {
  const std::vector<View> ranks = pieces(noise_view({32, 64}, 1), 1, {16, 16, 16, 16});
  std::vector<View> swapped = {ranks[0], ranks[2], ranks[1], ranks[3]};
  const std::vector<View> again = swapped;
  swapped.insert(swapped.end(), again.begin(), again.end());
  const AlignedPair pair = aligned({ranks}, {swapped});
  EXPECT_NE(values_of(pair.a), values_of(pair.b));
  EXPECT_EQ(pair.a.elements(), 32U * 64);
}

TEST(Whole, LeavesOutNoRank) {
  const View whole = noise_view({16, 6}, 1);
  std::vector<View> ranks = pieces(whole, 0, {8, 8});
  ranks.push_back(noise_view({8, 6}, 2));
  const Result<AlignedPair> pair = align({{whole}}, {ranks});
  EXPECT_TRUE(!pair.ok() || values_of(pair.value().a) != values_of(pair.value().b));
}

TEST(Whole, SaysWhyRanksDoNotFit) {
  const Result<AlignedPair> pair =
      align(Operand{{noise_view({4}, 1)}}, Operand{{noise_view({2}, 1), noise_view({2, 1}, 1)}});
  ASSERT_FALSE(pair.ok());
  EXPECT_EQ(pair.error().message(),
            "B: ranks do not fit together: rank 0 has [2], rank 1 has [2, 1]");
}

TEST(Stacked, ComparesTheFirstAndSaysSo) {
  const View stack = noise_view({4, 6, 5}, 1);
  const View first = narrowed(stack, 0, 0, 1);
  const AlignedPair pair = aligned({{stack}}, {{stored_as(first, {1, 6, 5})}});
  expect_same(pair);
  EXPECT_EQ(pair.a.shape, (Shape{6, 5}));
  const LayoutNote first_alone = {LayoutNote::Kind::one_of_stack, 'a', 0, 4, 1};
  EXPECT_EQ(pair.notes, LayoutNotes{first_alone});
  const AlignedPair wrong = aligned({{stack}}, {{noise_view({1, 6, 5}, 2)}});
  EXPECT_EQ(wrong.notes, (LayoutNotes{first_alone, {LayoutNote::Kind::not_confirmed}}));
}

TEST(Truncated, FindsTheEndToo) {
  const View longer = noise_view({9, 5}, 1);
  const View tail = narrowed(longer, 0, 3, 6);
  const AlignedPair pair = aligned({{longer}}, {{stored_as(tail, {6, 5})}});
  expect_same(pair);
  EXPECT_EQ(pair.notes, (LayoutNotes{{LayoutNote::Kind::only_end, 'a', 0, 9, 6}}));
}

TEST(AllShards, AreTakenOnceEach) {
  const View whole = noise_view({6, 8}, 1);
  const std::vector<View> halves = pieces(whole, 1, {4, 4});
  const auto elements = [](const std::vector<View>& shards) {
    return all_shards_of({"w", shards[0], "", shards}).elements();
  };
  EXPECT_EQ(elements({halves[0], halves[1]}), 48U);
  EXPECT_EQ(elements({whole, whole, whole}), 48U);
  EXPECT_EQ(elements({halves[0], halves[0], halves[1], halves[1]}), 48U);
  EXPECT_EQ(elements({halves[0], noise_view({3}, 1)}), 24U);  // These do not fit together.
  EXPECT_EQ(all_shards_of({"w", whole, ""}).elements(), 48U);
}

}  // namespace
}  // namespace tensordiff
