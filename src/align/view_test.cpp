#include "align/view.h"

#include "tensor/test_views.h"

namespace tensordiff {
namespace {

using Values = std::vector<float>;

// [rows, 4] gathered from two sources, cut at a row and a column that no split falls on.
View two_parts() {
  const View left = f32_view({2, 3}, {0, 1, 2, 6, 7, 8});
  const View right = f32_view({2, 3}, {3, 4, 5, 9, 10, 11});
  View view{DType::f32, false, {2, 6}, {left.parts[0], right.parts[0]}};
  view.parts[1].origin = {0, 3};
  return view;
}

TEST(Squeezed, DropsTheAxisAndKeepsTheElements) {
  const View view = squeezed(counting_view({2, 1, 3}), 1);
  EXPECT_EQ(view.shape, (Shape{2, 3}));
  EXPECT_EQ(values_of(view), (Values{0, 1, 2, 3, 4, 5}));
}

TEST(Squeezed, MakesAScalarOfOneElement) {
  const View view = squeezed(f32_view({1}, {7}), 0);
  EXPECT_EQ(view.shape, Shape{});
  EXPECT_EQ(values_of(view), Values{7});
}

TEST(Permuted, MovesAxes) {
  const View view = permuted(counting_view({2, 3}), std::vector<uint64_t>{1, 0});
  EXPECT_EQ(view.shape, (Shape{3, 2}));
  EXPECT_EQ(values_of(view), (Values{0, 3, 1, 4, 2, 5}));
}

TEST(Permuted, MovesTheBoxesOfAllParts) {
  const View view = permuted(two_parts(), std::vector<uint64_t>{1, 0});
  EXPECT_EQ(values_of(view), (Values{0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11}));
}

TEST(Split, GivesOneAxisAsSeveral) {
  const View view = split(counting_view({2, 12}), 1, std::vector<uint64_t>{2, 3, 2});
  EXPECT_EQ(view.shape, (Shape{2, 2, 3, 2}));
  EXPECT_EQ(view.parts.size(), 1U);
  EXPECT_EQ(values_of(view), values_of(counting_view({2, 12})));
}

TEST(Split, WorksOnWhatIsNotContiguous) {
  const View turned = permuted(counting_view({6, 2}), std::vector<uint64_t>{1, 0});
  const View view = split(turned, 1, std::vector<uint64_t>{2, 3});
  EXPECT_EQ(view.shape, (Shape{2, 2, 3}));
  EXPECT_EQ(values_of(view), (Values{0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11}));
}

TEST(Split, CutsPartsThatEndInsideARow) {
  const View view = split(two_parts(), 1, std::vector<uint64_t>{3, 2});  // Parts meet at 3.
  EXPECT_EQ(view.shape, (Shape{2, 3, 2}));
  EXPECT_EQ(values_of(view), values_of(counting_view({2, 6})));
}

TEST(Split, CutsEveryPartOfAnyCutRight) {
  // One axis of 12 in two parts that meet anywhere, split in every way.
  for (uint64_t cut = 1; cut < 12; ++cut) {
    View whole = counting_view({12});
    View parts = whole;
    parts.parts.push_back(whole.parts[0]);
    parts.parts[0].shape = {cut};
    parts.parts[1].shape = {12 - cut};
    parts.parts[1].origin = {cut};
    parts.parts[1].offset = cut;
    for (const std::vector<uint64_t>& sizes :
         {std::vector<uint64_t>{2, 6}, {6, 2}, {3, 4}, {4, 3}, {2, 3, 2}, {12, 1}, {1, 12}})
      EXPECT_EQ(values_of(split(parts, 0, sizes)), values_of(whole)) << "cut at " << cut;
  }
}

TEST(Truncated, KeepsTheFirstEntries) {
  EXPECT_EQ(values_of(truncated(counting_view({3, 2}), 0, 2)), (Values{0, 1, 2, 3}));
  EXPECT_EQ(values_of(truncated(counting_view({3, 2}), 1, 1)), (Values{0, 2, 4}));
}

TEST(Truncated, DropsPartsThatLieBeyond) {
  const View view = truncated(two_parts(), 1, 3);
  EXPECT_EQ(view.parts.size(), 1U);
  EXPECT_EQ(values_of(view), (Values{0, 1, 2, 6, 7, 8}));
  EXPECT_EQ(values_of(truncated(two_parts(), 1, 4)), (Values{0, 1, 2, 3, 6, 7, 8, 9}));
}

TEST(Apply, DoesWhatTheStepSays) {
  const View view = counting_view({1, 4, 3});
  EXPECT_EQ(apply({'a', Op::squeeze, {0}}, view).shape, (Shape{4, 3}));
  EXPECT_EQ(apply({'a', Op::permute, {2, 0, 1}}, view).shape, (Shape{3, 1, 4}));
  EXPECT_EQ(apply({'a', Op::split, {1, 2, 2}}, view).shape, (Shape{1, 2, 2, 3}));
  EXPECT_EQ(apply({'a', Op::truncate, {2, 1}}, view).shape, (Shape{1, 4, 1}));
}

}  // namespace
}  // namespace tensordiff
