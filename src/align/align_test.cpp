#include <cmath>
#include <limits>
#include <set>

#include "align/view.h"
#include "tensor/test_views.h"

namespace tensordiff {
namespace {

using Values = std::vector<float>;

const LayoutNotes kUnconfirmed = {{LayoutNote::Kind::not_confirmed}};

std::string text(const Plan& plan) {
  constexpr std::string_view kNames[] = {"squeeze", "permute", "split",  "truncate", "select",
                                         "flatten", "ranks…",  "ranks…", "ranks…",   "ranks…"};
  std::string result;
  for (const Step& step : plan) {
    result += fmt::format("{}{}.{}", result.empty() ? "" : " ", step.side,
                          kNames[static_cast<std::size_t>(step.op)]);
    for (std::size_t i = 0; i < step.argument.size(); ++i)
      result += fmt::format("{}{}", i == 0 ? ":" : ",", step.argument[i]);
  }
  return result;
}

AlignedPair aligned(const View& a, const View& b) {
  Result<AlignedPair> pair = align(a, b);
  EXPECT_TRUE(pair.ok()) << (pair.ok() ? "" : pair.error().message());
  return pair.ok() ? std::move(pair).value() : AlignedPair{};
}

std::string refusal(const View& a, const View& b) {
  const Result<AlignedPair> pair = align(a, b);
  return pair.ok() ? "aligned: " + text(pair.value().steps) : pair.error().message();
}

// Two layouts of one tensor: `b` holds the axes of `a` in another order, stored under its own
// shape.
struct Layout {
  Shape a;
  std::vector<uint64_t> order;  // Of the axes of a, for b.
  Shape b;
  Shape shape;  // The one both should get.
  std::string steps;
};

TEST(Align, FindsTheLayout) {
  const Layout layouts[] = {
      // The shapes agree.
      {{3, 4}, {0, 1}, {3, 4}, {3, 4}, ""},
      // Axes of size 1.
      {{1, 20, 12}, {0, 1, 2}, {20, 12}, {20, 12}, "a.squeeze:0"},
      {{20, 12}, {0, 1}, {1, 20, 1, 12, 1}, {20, 12}, "b.squeeze:4 b.squeeze:2 b.squeeze:0"},
      {{1, 8, 1, 5}, {0, 1, 2, 3}, {8, 1, 5}, {8, 1, 5}, "a.squeeze:0"},
      {{8, 1, 5}, {0, 1, 2}, {1, 8, 5}, {8, 5}, "a.squeeze:1 b.squeeze:0"},
      {{}, {}, {1}, {}, "b.squeeze:0"},
      {{1, 1}, {0, 1}, {1}, {1}, "a.squeeze:0"},
      // Merged axes.
      {{20, 128}, {0, 1}, {20, 8, 16}, {20, 8, 16}, "a.split:1,8,16"},
      {{20, 8, 16}, {0, 1, 2}, {1, 20, 128}, {20, 8, 16}, "b.squeeze:0 b.split:1,8,16"},
      {{3, 7, 40}, {0, 1, 2}, {21, 5, 8}, {3, 7, 5, 8}, "a.split:2,5,8 b.split:0,3,7"},
      {{2, 3, 5}, {0, 1, 2}, {30}, {2, 3, 5}, "b.split:0,2,3,5"},
      // Axes in another order.
      {{1, 8, 76, 6}, {0, 2, 1, 3}, {76, 8, 6}, {8, 76, 6}, "a.squeeze:0 b.permute:1,0,2"},
      {{7, 2, 9}, {1, 0, 2}, {2, 7, 9}, {7, 2, 9}, "b.permute:1,0,2"},
      {{24, 10}, {1, 0}, {10, 24}, {24, 10}, "b.permute:1,0"},
      // Both.
      {{8, 20, 16}, {1, 0, 2}, {20, 128}, {20, 8, 16}, "a.permute:1,0,2 b.split:1,8,16"},
      {{20, 128}, {0, 1}, {20, 128, 1}, {20, 128}, "b.squeeze:2"},
      {{3, 7, 10}, {1, 0, 2}, {21, 10}, {7, 3, 10}, "a.permute:1,0,2 b.split:0,7,3"},
      // Equal sizes: nothing but the values can tell.
      {{1, 8, 8, 6}, {0, 2, 1, 3}, {8, 8, 6}, {8, 8, 6}, "a.squeeze:0 b.permute:1,0,2"},
      {{8, 8, 16}, {1, 0, 2}, {8, 128}, {8, 8, 16}, "a.permute:1,0,2 b.split:1,8,16"},
      {{8, 8, 16}, {0, 1, 2}, {8, 128}, {8, 8, 16}, "b.split:1,8,16"},
      {{6, 6, 4}, {2, 1, 0}, {4, 6, 6}, {6, 6, 4}, "b.permute:2,1,0"},
      {{6, 6, 4}, {2, 0, 1}, {4, 6, 6}, {6, 6, 4}, "b.permute:1,2,0"},
      {{16, 128}, {0, 1}, {16, 1, 8, 16}, {16, 8, 16}, "b.squeeze:1 a.split:1,8,16"},
  };
  for (const Layout& layout : layouts) {
    SCOPED_TRACE(fmt::format("a {} b {}", testing::PrintToString(layout.a),
                             testing::PrintToString(layout.b)));
    const View a = noise_view(layout.a, 1);
    const View b = stored_as(permuted(a, layout.order), layout.b);
    const AlignedPair pair = aligned(a, b);
    EXPECT_EQ(text(pair.steps), layout.steps);
    EXPECT_EQ(pair.a.shape, layout.shape);
    EXPECT_EQ(pair.b.shape, layout.shape);
    EXPECT_EQ(values_of(pair.a), values_of(pair.b));
    EXPECT_NE(pair.notes, kUnconfirmed);
  }
}

TEST(Align, RefusesShapesWithoutACommonLayout) {
  const struct {
    Shape a, b;
    std::string message;
  } cases[] = {
      {{2, 3}, {5, 7}, "no common layout: [2, 3] against [5, 7]"},
      {{4, 6}, {24, 2}, "no common layout: [4, 6] against [24, 2]"},
      {{4, 6}, {3, 8}, "no common layout: [4, 6] against [3, 8]"},  // Both would have to be cut.
      {{0, 4}, {4}, "no common layout: [0, 4] against [4]"},
      {{0, 4}, {4, 0}, "no common layout: [0, 4] against [4, 0]"},
      {{0, 4}, {5, 4}, "no common layout: [0, 4] against [5, 4]"},
      {{}, {2}, "no common layout: [] against [2]"},
      {{20, 3}, {24, 3}, "no common layout: [20, 3] against [24, 3]"},  // Other values.
  };
  for (const auto& [a, b, message] : cases)
    EXPECT_EQ(refusal(noise_view(a, 1), noise_view(b, 2)), message);
}

TEST(Align, TakesEmptyTensorsByShape) {
  EXPECT_EQ(aligned(counting_view({0, 4}), counting_view({0, 4})).steps.size(), 0U);
  EXPECT_EQ(text(aligned(counting_view({1, 0, 4}), counting_view({0, 4})).steps), "a.squeeze:0");
}

TEST(Align, DoesNothingWhenToldSo) {
  const AlignOptions none{.enabled = false};
  EXPECT_TRUE(align(counting_view({2, 3}), counting_view({2, 3}), none).ok());
  EXPECT_FALSE(align(counting_view({1, 2, 3}), counting_view({2, 3}), none).ok());
}

// Rounding, noise and other types of element do not hide which order is meant.
TEST(Align, SeesTheOrderThroughNoise) {
  const View a = noise_view({6, 6, 16}, 1);
  std::vector<float> values = values_of(permuted(a, std::vector<uint64_t>{1, 0, 2}));
  const std::vector<float> error = noise(values.size(), 2);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = -0.1F * values[i] + 0.02F * error[i];
  const AlignedPair pair = aligned(a, f32_view({6, 96}, values));
  EXPECT_EQ(text(pair.steps), "a.permute:1,0,2 b.split:1,6,16");
  EXPECT_EQ(pair.notes, (LayoutNotes{{LayoutNote::Kind::other_order}}));
}

TEST(Align, TakesTheSimplestAndSaysSoWhereValuesDoNotTell) {
  const struct {
    Shape a, b;
    std::string steps;
  } cases[] = {
      {{20, 8, 16}, {8, 20, 16}, "b.permute:1,0,2"},
      {{20, 8, 8}, {8, 20, 8}, "b.permute:1,0,2"},
      {{8, 8, 16}, {8, 128}, "b.split:1,8,16"},
      {{1, 8, 8, 16}, {8, 8, 16}, "a.squeeze:0"},
  };
  for (const auto& [a, b, steps] : cases) {
    const AlignedPair pair = aligned(noise_view(a, 1), noise_view(b, 2));
    EXPECT_EQ(text(pair.steps), steps);
    EXPECT_EQ(pair.notes, kUnconfirmed);
  }
}

TEST(Align, NeedsNoValuesWhereOnlyOneLayoutKeepsTheOrder) {
  const AlignedPair pair = aligned(noise_view({1, 20, 12}, 1), noise_view({20, 12}, 2));
  EXPECT_TRUE(pair.notes.empty());
}

TEST(Align, TakesAnyLayoutOfAConstant) {
  const AlignedPair pair =
      aligned(f32_view({4, 6}, Values(24, 3)), f32_view({6, 4}, Values(24, 3)));
  EXPECT_EQ(text(pair.steps), "b.permute:1,0");
  EXPECT_TRUE(pair.notes.empty());
}

TEST(Align, KeepsWithTheOrderWhereEverythingIsNan) {
  const Values nan(24, std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(aligned(f32_view({4, 6}, nan), f32_view({6, 4}, nan)).notes, kUnconfirmed);
}

TEST(Align, CutsTheLongerSideOnlyWhereTheRestIsTheSame) {
  const View b = noise_view({24, 5}, 1);
  const View a = stored_as(truncated(b, 0, 20), {1, 20, 5});
  const AlignedPair pair = aligned(a, b);
  EXPECT_EQ(text(pair.steps), "a.squeeze:0 b.truncate:0,20");
  EXPECT_EQ(pair.notes, (LayoutNotes{{LayoutNote::Kind::only_beginning, 'b', 0, 24, 20}}));
  EXPECT_EQ(values_of(pair.a), values_of(pair.b));

  const AlignedPair mirrored = aligned(b, a);
  EXPECT_EQ(mirrored.notes, (LayoutNotes{{LayoutNote::Kind::only_beginning, 'a', 0, 24, 20}}));
}

TEST(Align, DoesNotCutForNearlyTheSame) {
  // One element of 100,000 is enough, wherever the sample looks.
  const View b = noise_view({1010, 100}, 1);
  for (const std::size_t at : {0, 54'321, 99'999}) {
    Values values = values_of(truncated(b, 0, 1000));
    values[at] = std::nextafter(values[at], 9.0F);
    EXPECT_EQ(refusal(f32_view({1000, 100}, values), b),
              "no common layout: [1000, 100] against [1010, 100]");
  }
}

View in_bf16(const View& view) {
  std::string bytes;
  for (const float value : values_of(view)) {
    const auto bits = std::bit_cast<uint32_t>(value);
    bytes += static_cast<char>(bits >> 16 & 0xFF);
    bytes += static_cast<char>(bits >> 24);
  }
  return contiguous_view(DType::bf16, view.shape, ByteSource(bytes_of(bytes))).value();
}

TEST(Align, CutsAcrossACast) {
  const View b = noise_view({24, 5}, 1);
  const View a = stored_as(truncated(b, 0, 20), {20, 5});
  const View half = in_bf16(b);
  EXPECT_EQ(text(aligned(a, half).steps), "b.truncate:0,20");
  Values values = values_of(a);
  values[7] *= 1.02F;  // More than bf16 rounds.
  EXPECT_EQ(refusal(f32_view({20, 5}, values), half), "no common layout: [20, 5] against [24, 5]");
}

TEST(Align, CutsAMatrixThatIsTurned) {
  const View b = noise_view({5, 24}, 1);
  const View a = stored_as(permuted(truncated(b, 1, 20), std::vector<uint64_t>{1, 0}), {20, 5});
  EXPECT_EQ(text(aligned(a, b).steps), "a.permute:1,0 b.truncate:1,20");
}

TEST(Align, DoesNotCutZeros) {
  EXPECT_EQ(refusal(f32_view({8}, Values(8)), f32_view({9}, Values(9))),
            "no common layout: [8] against [9]");
}

// --- Mistakes stay what they are ---

TEST(Align, DoesNotTransposeASquareMatrix) {
  const View a = noise_view({16, 16}, 1);
  const View turned = permuted(a, std::vector<uint64_t>{1, 0});
  EXPECT_EQ(text(aligned(a, stored_as(turned, {16, 16})).steps), "");
  EXPECT_EQ(text(aligned(a, stored_as(turned, {1, 16, 16})).steps), "b.squeeze:0");
  EXPECT_EQ(text(aligned(a, stored_as(turned, {16, 16, 1, 1})).steps), "b.squeeze:3 b.squeeze:2");
}

TEST(Align, DoesNotSwapAxesOfEqualShapes) {
  const View a = noise_view({8, 8, 4}, 1);
  const View b = stored_as(permuted(a, std::vector<uint64_t>{1, 0, 2}), {8, 8, 4});
  EXPECT_EQ(text(aligned(a, b).steps), "");
}

// [tokens, heads * features] of which the port has made [tokens, features * heads].
TEST(Align, DoesNotUnscrambleFeatures) {
  const View a = noise_view({20, 8, 16}, 1);
  const View b = stored_as(permuted(a, std::vector<uint64_t>{0, 2, 1}), {20, 128});
  const AlignedPair pair = aligned(a, b);
  EXPECT_EQ(text(pair.steps), "b.split:1,8,16");
  EXPECT_NE(values_of(pair.a), values_of(pair.b));
}

TEST(Align, DoesNotReorderInsideAnAxis) {
  // Heads of a [heads, tokens, features] swapped, flipped, and tokens shifted, then moved as a
  // correct port would move them.
  const Shape shape = {8, 20, 16};
  const View a = noise_view(shape, 1);
  const Values values = values_of(a);
  const auto mistake = [&](auto from_head, auto from_token) {
    Values wrong;
    for (std::size_t head = 0; head < 8; ++head)
      for (std::size_t token = 0; token < 20; ++token)
        for (std::size_t k = 0; k < 16; ++k)
          wrong.push_back(values[(from_head(head) * 20 + from_token(token)) * 16 + k]);
    return f32_view(shape, wrong);
  };
  const auto same = [](std::size_t i) { return i; };
  const View wrongs[] = {
      mistake([](std::size_t head) { return 7 - head; }, same),
      mistake([](std::size_t head) { return head < 2 ? 1 - head : head; }, same),
      mistake(same, [](std::size_t token) { return (token + 1) % 20; }),
  };
  for (const View& wrong : wrongs) {
    const View b = stored_as(permuted(wrong, std::vector<uint64_t>{1, 0, 2}), {20, 128});
    const AlignedPair pair = aligned(a, b);
    EXPECT_EQ(text(pair.steps), "a.permute:1,0,2 b.split:1,8,16");
    EXPECT_NE(values_of(pair.a), values_of(pair.b));
  }
}

// --- Limits ---

TEST(Align, SurvivesManyAxes) {
  const Shape many(18, 2);  // 18! orders fit the sizes.
  Shape few(9, 4);
  EXPECT_TRUE(align(noise_view(many, 1), noise_view(few, 2)).ok());
  Shape units(kRankMax, 1);
  units[5] = 3, units[60] = 2;
  EXPECT_TRUE(align(counting_view(units), counting_view({2, 3})).ok());
}

TEST(Align, TakesTheSimplestWhereValuesCannotBeRead) {
  View a = counting_view({4, 6});
  a.parts[0].source = ByteSource(96, []() -> Result<Bytes> { return Error("corrupt member"); });
  const AlignedPair pair = aligned(a, counting_view({6, 4}));
  EXPECT_EQ(pair.notes, kUnconfirmed);
  EXPECT_EQ(refusal(a, counting_view({5, 6})), "no common layout: [4, 6] against [5, 6]");
}

TEST(Aligners, AreListedOnceWithNameAndSummary) {
  std::set<std::string_view> names;
  for (const Aligner* aligner : aligners::kAll) {
    EXPECT_TRUE(names.insert(aligner->name).second) << aligner->name;
    EXPECT_FALSE(aligner->summary.empty()) << aligner->name;
  }
}

TEST(Flattened, ComparesTheSameNumbersInOtherRows) {
  const View a = noise_view({6, 10}, 1);
  const View b = stored_as(a, {4, 15});
  const Result<AlignedPair> pair = align(a, b);
  ASSERT_TRUE(pair.ok()) << pair.error().message();
  EXPECT_EQ(values_of(pair.value().a), values_of(pair.value().b));
  EXPECT_EQ(pair.value().steps, (Plan{{'a', Op::flatten, {}}, {'b', Op::flatten, {}}}));
  EXPECT_EQ(pair.value().notes, (LayoutNotes{{LayoutNote::Kind::flattened}}));
}

TEST(Flattened, IsNotTakenWithoutTheValues) {
  const Result<AlignedPair> pair = align(noise_view({6, 10}, 1), noise_view({4, 15}, 2));
  ASSERT_FALSE(pair.ok());
  EXPECT_EQ(pair.error().message(), "no common layout: [6, 10] against [4, 15]");
  // Nor where the elements do not lie in even steps: the first ten columns of twelve.
  const View part = narrowed(noise_view({6, 12}, 1), 1, 0, 10);
  EXPECT_FALSE(align(part, stored_as(part, {4, 15})).ok());
}

}  // namespace
}  // namespace tensordiff
