// Mistakes that a change of layout or of order could undo, planted in a port whose layout differs
// as well: the row is different, and a finding says what was done.

#include <fmt/ranges.h>

#include <algorithm>

#include "align/view.h"
#include "tensor/test_views.h"
#include "test_compare.h"

namespace tensordiff {
namespace {

constexpr uint64_t kTokens = 18, kHeads = 6, kDim = 8, kWidth = kHeads * kDim;

View stored(const View& view) { return stored_as(view, view.shape); }

// Entries of an axis in another order.
View reordered(const View& view, std::size_t axis, const std::vector<uint64_t>& order) {
  std::vector<View> parts;
  for (const uint64_t i : order) parts.push_back(narrowed(view, axis, i, 1));
  return stored(concatenated(parts, axis));
}

View moved(const View& view, const std::vector<uint64_t>& order) {
  return stored(permuted(view, order));
}

// Compares one step, or one weight, of a with what b has of it on one rank or on several.
Report compare(const std::string& name, const View& a, const std::vector<View>& b) {
  Catalog left, right;
  left.tensors.push_back({name, a, ""});
  for (std::size_t rank = 0; rank < b.size(); ++rank)
    right.tensors.push_back(
        {b.size() == 1 ? name : fmt::format("tp_rank_{}/{}", rank, name), b[rank], ""});
  return compare_catalogs(std::move(left), std::move(right));
}

struct Planted {
  std::string_view what;
  std::string name;
  View a;
  std::vector<View> b;
  std::string_view code;
};

std::vector<Planted> planted() {
  const View heads = noise_view({kTokens, kHeads, kDim}, 1);
  const View flipped = reordered(heads, 1, {5, 4, 3, 2, 1, 0});
  const View shifted =
      reordered(heads, 0, {17, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16});
  const View merged = stored_as(heads, {kTokens, kWidth});
  const View square = noise_view({24, 24}, 2);
  const View half[] = {stored(narrowed(merged, 1, 0, kWidth / 2)),
                       stored(narrowed(merged, 1, kWidth / 2, kWidth / 2))};
  return {
      {"heads flipped",
       "0_query",
       merged,
       {stored_as(flipped, {kTokens, kWidth})},
       "block_permutation"},
      {"heads flipped, stored by head",
       "0_query",
       merged,
       {moved(flipped, {1, 0, 2})},
       "block_permutation"},
      {"heads flipped, with a batch",
       "0_query",
       merged,
       {stored_as(flipped, {1, kTokens, kWidth})},
       "block_permutation"},
      {"tokens shifted", "0_query", merged, {stored_as(shifted, {kTokens, kWidth})}, "token_shift"},
      {"tokens shifted, stored by head",
       "0_query",
       merged,
       {moved(shifted, {1, 0, 2})},
       "token_shift"},
      {"square weight transposed",
       "layers.0.self_attn.q_proj.weight",
       square,
       {moved(square, {1, 0})},
       "axis_permutation"},
      {"ranks swapped", "0_query", merged, {half[1], half[0]}, "block_permutation"},
      {"ranks swapped, tokens last",
       "0_query",
       merged,
       {moved(half[1], {1, 0}), moved(half[0], {1, 0})},
       "block_permutation"},
  };
}

TEST(PlantedMistakes, SurviveAlignmentAndAreFound) {
  for (const Planted& each : planted()) {
    SCOPED_TRACE(each.what);
    const Report report = compare(each.name, each.a, each.b);
    ASSERT_EQ(report.pairs.size(), 1U);
    EXPECT_EQ(report.pairs[0].comparison.status, Status::different);
    std::string found;
    for (const Finding& finding : report.findings) found += fmt::format("{} ", finding.code);
    EXPECT_NE(found.find(each.code), std::string::npos) << found;
  }
}

// One rank that fell behind is told, though the others agree.
TEST(PlantedMistakes, ACopyThatIsOutOfStepIsTold) {
  const View norm = noise_view({kTokens, kWidth}, 3);
  std::vector<float> values = values_of(norm);
  values[100] += 1;
  const Report report = compare("0_post_mlp", norm, {norm, norm, f32_view(norm.shape, values)});
  ASSERT_EQ(report.pairs.size(), 1U);
  EXPECT_EQ(report.pairs[0].comparison.status, Status::different);
  EXPECT_NE(report.pairs[0].message.find("rank 2"), std::string::npos) << report.pairs[0].message;
  EXPECT_TRUE(report.findings.empty()) << report.findings[0].explanation;
}

// However four ranks change places: some orders look as if neighbours were copies of each other.
TEST(PlantedMistakes, RanksInAnyWrongOrderAreTold) {
  const View square = noise_view({24, 24}, 4);
  for (const uint64_t axis : {0, 1}) {
    std::vector<uint64_t> order = {0, 1, 2, 3};
    while (std::ranges::next_permutation(order).found) {
      SCOPED_TRACE(fmt::format("axis {}, ranks {}", axis, fmt::join(order, " ")));
      std::vector<View> ranks;
      for (const uint64_t rank : order)
        ranks.push_back(stored(narrowed(square, axis, 6 * rank, 6)));
      const Report report = compare("layers.0.self_attn.q_proj.weight", square, ranks);
      ASSERT_EQ(report.pairs.size(), 1U);
      EXPECT_EQ(report.pairs[0].comparison.status, Status::different);
      ASSERT_FALSE(report.findings.empty());
      EXPECT_EQ(report.findings[0].code, "block_permutation") << report.findings[0].explanation;
    }
  }
}

}  // namespace
}  // namespace tensordiff
