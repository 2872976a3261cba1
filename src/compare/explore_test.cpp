// The closer looks, each against a plain loop that says what it means.

#include "compare/explore.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "compare/pyramid.h"

namespace tensordiff {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Example {
  Shape shape;
  std::vector<float> a, b;

  AlignedPair pair() const { return {view(a), view(b), {}, {}}; }
  View view(const std::vector<float>& values) const {
    std::string memory(values.size() * 4, '\0');
    std::memcpy(memory.data(), values.data(), memory.size());
    return contiguous_view(DType::f32, shape, ByteSource(bytes_of(std::move(memory)))).value();
  }
  double apart(std::size_t i) const {
    return std::abs(static_cast<double>(b[i]) - static_cast<double>(a[i]));
  }
};

Example example(Shape shape, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Example made{std::move(shape), {}, {}};
  for (uint64_t i = 0; i < element_count(made.shape); ++i) {
    made.a.push_back(normal(random));
    made.b.push_back(random() % 4 ? made.a.back() + 0.01F * normal(random) : made.a.back());
  }
  return made;
}

TEST(AxisProfiles, AgreeWithAPlainLoop) {
  Example e = example({37, 5, 900}, 1);
  e.b[40'000] = kNan;
  const auto profiles = axis_profiles(e.pair()).value();
  ASSERT_EQ(profiles.size(), 3U);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    std::vector<double> most(e.shape[axis], -1), sum(e.shape[axis]), count(e.shape[axis]);
    for (std::size_t i = 0; i < e.a.size(); ++i) {
      if (!std::isfinite(e.b[i])) continue;
      const uint64_t at = index_at(e.shape, i)[axis];
      most[at] = std::max(most[at], e.apart(i));
      sum[at] += e.apart(i);
      ++count[at];
    }
    for (std::size_t at = 0; at < e.shape[axis]; ++at) {
      EXPECT_EQ(profiles[axis].max_abs[at], most[at]);
      EXPECT_NEAR(profiles[axis].mean_abs[at], sum[at] / count[at], 1e-12);
    }
    EXPECT_EQ(profiles[axis].nonfinite[index_at(e.shape, 40'000)[axis]], 1U);
  }
}

TEST(AxisProfiles, PutALongAxisIntoBins) {
  const Example e = example({10'000}, 2);
  const AxisProfile profile = axis_profiles(e.pair()).value()[0];
  EXPECT_EQ(profile.indexes_per_bin, 3U);
  EXPECT_EQ(profile.max_abs.size(), 3334U);
  EXPECT_EQ(profile.max_abs[100], std::max({e.apart(300), e.apart(301), e.apart(302)}));
}

TEST(DifferenceHistogram, CountsByPowersOfTwo) {
  Example e{{6}, {0, 0, 0, 1, kNan, 5}, {1, 1.5, 0.25, 1, 2, 5}};
  const DifferenceHistogram h = difference_histogram(e.pair()).value();
  const auto at = [&](int exponent) {
    return h.counts[static_cast<std::size_t>(exponent - DifferenceHistogram::kLowest)];
  };
  EXPECT_EQ(at(0), 2U);
  EXPECT_EQ(at(-2), 1U);
  EXPECT_EQ(h.equal, 2U);
  EXPECT_EQ(h.nonfinite, 1U);
  const Example large = example({200'000}, 3);
  const DifferenceHistogram sum = difference_histogram(large.pair()).value();
  uint64_t total = sum.equal;
  for (const uint64_t count : sum.counts) total += count;
  EXPECT_EQ(total, 200'000U);
}

TEST(ValueHistogram, AgreesWithAPlainLoop) {
  const Example e = example({90'000}, 4);
  const ValueHistogram h = value_histogram(e.pair(), -2, 2, 50).value();
  std::vector<uint64_t> a(50), b(50);
  for (std::size_t i = 0; i < e.a.size(); ++i) {
    if (e.a[i] >= -2 && e.a[i] <= 2)
      ++a[std::min<std::size_t>(49, static_cast<std::size_t>((e.a[i] + 2.0) * 12.5))];
    if (e.b[i] >= -2 && e.b[i] <= 2)
      ++b[std::min<std::size_t>(49, static_cast<std::size_t>((e.b[i] + 2.0) * 12.5))];
  }
  EXPECT_EQ(h.a, a);
  EXPECT_EQ(h.b, b);
}

TEST(WorstElements, AreTheWorstOfASortedList) {
  Example e = example({170'000}, 5);
  e.b[77] = kNan;
  e.b[160'000] = e.a[160'000] + 3;
  const auto worst = worst_elements(e.pair(), 20).value();
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < e.a.size(); ++i)
    if (i != 77) order.push_back(i);
  std::ranges::stable_sort(order, [&](auto x, auto y) { return e.apart(x) > e.apart(y); });
  ASSERT_EQ(worst.size(), 20U);
  EXPECT_EQ(worst[0].position, 77U) << "a NaN on one side is the worst of all";
  EXPECT_EQ(worst[1].position, 160'000U);
  for (std::size_t i = 1; i < 20; ++i) EXPECT_EQ(worst[i].position, order[i - 1]);
  EXPECT_TRUE(worst_elements(e.pair(), 0).value().empty());
}

TEST(Pool, AgreesWithAPlainLoop) {
  Example e = example({3, 50, 41}, 6);
  e.a[1 * 50 * 41 + 20 * 41 + 20] = kNan;
  const Slice slice{1, 2, {1, 0, 0}, Layer::a, Pooling::most};
  const Picture picture = pool(e.pair(), slice, {4, 5, 40, 33}, 8).value();
  Slice means = slice;
  means.pooling = Pooling::mean;
  const Picture mean = pool(e.pair(), means, {4, 5, 40, 33}, 8).value();
  EXPECT_EQ(picture.rows, 5U);
  EXPECT_EQ(picture.columns, 5U);
  for (std::size_t row = 0; row < 5; ++row) {
    for (std::size_t column = 0; column < 5; ++column) {
      float most = 0;
      double sum = 0;
      int count = 0;
      for (std::size_t r = 4 + 8 * row; r < 12 + 8 * row; ++r) {
        for (std::size_t c = 5 + 8 * column; c < std::min<std::size_t>(38, 13 + 8 * column); ++c) {
          const float value = e.a[50 * 41 + r * 41 + c];
          if (std::isnan(value) || std::abs(value) > std::abs(most)) most = value;
          if (std::isnan(value)) continue;
          sum += value;
          ++count;
        }
      }
      const std::size_t at = row * 5 + column;
      if (row == 2 && column == 1) {
        EXPECT_TRUE(std::isnan(picture.cells[at]));
      } else {
        EXPECT_EQ(picture.cells[at], most);
      }
      EXPECT_NEAR(mean.cells[at], sum / count, 1e-6);
    }
  }
}

TEST(Pool, ShowsTransposedSlicesAndDistances) {
  const Example e = example({30, 20}, 7);
  const Picture picture =
      pool(e.pair(), {1, 0, {0, 0}, Layer::distance, Pooling::most}, {0, 0, 20, 30}, 1).value();
  EXPECT_EQ(picture.cells[3 * 30 + 7], static_cast<float>(e.apart(7 * 20 + 3)));
}

TEST(Pool, SaysWhatDoesNotFit) {
  const Example e = example({4, 5}, 8);
  const Slice slice{0, 1, {0, 0}, Layer::a, Pooling::most};
  EXPECT_EQ(pool(e.pair(), slice, {0, 0, 5, 5}, 1).error().message(),
            "the rectangle lies outside the slice of 4 × 5");
  EXPECT_EQ(pool(e.pair(), {0, 0, {0, 0}, Layer::a, Pooling::most}, {}, 1).error().message(),
            "a slice needs two different axes of [4, 5]");
  EXPECT_FALSE(pool(e.pair(), slice, {UINT64_MAX, 0, 2, 2}, 1).ok());
}

TEST(Pool, OfXAndMinusXShowsX) {
  const Example e{{1, 4}, {-2, 2, -0.0F, 0}, {-2, 2, -3, 1}};
  const Slice slice{0, 1, {0, 0}, Layer::a, Pooling::most};
  EXPECT_EQ(pool(e.pair(), slice, {0, 0, 1, 4}, 2).value().cells, (std::vector<float>{2, 0}));
}

// Rows wider than what is pooled at a time, and values that no float holds.
TEST(Pool, WideRowsOfDoublesAndIntegers) {
  std::vector<double> values(40'000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<double>(i)) * 9;
  values[33'333] = -1e300;
  std::string memory(values.size() * 8, '\0');
  std::memcpy(memory.data(), values.data(), memory.size());
  const ByteSource source(bytes_of(std::move(memory)));
  const View view = contiguous_view(DType::f64, {1, 40'000}, source).value();
  const Slice slice{0, 1, {0, 0}, Layer::a, Pooling::most};
  const Picture picture = pool({view, view, {}, {}}, slice, {0, 0, 1, 40'000}, 4).value();
  for (std::size_t cell = 0; cell < 10'000; ++cell) {
    double most = 0;
    for (std::size_t i = 4 * cell; i < 4 * cell + 4; ++i)
      if (std::abs(values[i]) > std::abs(most)) most = values[i];
    ASSERT_EQ(picture.cells[cell], static_cast<float>(most)) << cell;
  }
}

TEST(Glance, SeesTheMiddleOfEachCell) {
  Example e = example({64, 200}, 10);
  const Slice slice{0, 1, {0, 0}, Layer::b, Pooling::most};
  const Picture picture = glance(e.pair(), slice, {0, 0, 64, 200}, 64).value();
  ASSERT_EQ(picture.cells.size(), 4U);
  float most = 0;
  for (std::size_t i = 32 * 200 + 64 + 16; i < 32 * 200 + 64 + 48; ++i)
    if (std::abs(e.b[i]) > std::abs(most)) most = e.b[i];
  EXPECT_EQ(picture.cells[1], most);
  EXPECT_EQ(glance(e.pair(), slice, {0, 0, 64, 200}, 1).value().cells,
            pool(e.pair(), slice, {0, 0, 64, 200}, 1).value().cells);
}

TEST(Pyramid, EachLevelIsThePooledSlice) {
  const Example e = example({700, 300}, 9);
  constexpr Layer kLayers[] = {Layer::a, Layer::distance};
  for (const Pooling pooling : {Pooling::most, Pooling::mean}) {
    Slice slice{0, 1, {0, 0}, Layer::b, pooling};
    const std::vector<Picture> pictures = pyramid(e.pair(), slice, kLayers).value();
    ASSERT_EQ(pictures.size(), 6U);
    EXPECT_EQ(pictures[0].pool, 1U);
    EXPECT_EQ(pictures[2].rows, 175U);
    EXPECT_EQ(pictures[3].layer, Layer::distance);
    for (const Picture& picture : pictures) {
      slice.layer = picture.layer;
      const Picture direct = pool(e.pair(), slice, {0, 0, 700, 300}, picture.pool).value();
      for (std::size_t i = 0; i < direct.cells.size(); ++i)
        ASSERT_NEAR(picture.cells[i], direct.cells[i], pooling == Pooling::most ? 0 : 1e-6);
    }
  }
}

}  // namespace
}  // namespace tensordiff
