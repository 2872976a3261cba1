#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "base/parallel.h"
#include "compare/comparison.h"

namespace tensordiff {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

template <class T>
View view_of(DType dtype, Shape shape, const std::vector<T>& values) {
  std::string memory(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(memory.data(), values.data(), memory.size());
  return contiguous_view(dtype, std::move(shape), ByteSource(bytes_of(std::move(memory)))).value();
}

View f32(const std::vector<float>& values) { return view_of(DType::f32, {values.size()}, values); }

Comparison compare_views(View a, View b, const CompareOptions& options = {}) {
  return compare({std::move(a), std::move(b), {}, {}}, options).value();
}

TEST(Compare, CountsAndMeasures) {
  const Comparison c = compare_views(f32({1, 2, 3, 4}), f32({1, 2.5, 3, 3}));
  EXPECT_EQ(c.status, Status::different);
  EXPECT_EQ(c.diff.compared, 4U);
  EXPECT_EQ(c.diff.equal, 2U);
  EXPECT_EQ(c.diff.max_abs, 1);
  EXPECT_EQ(c.diff.max_abs_at, std::vector<uint64_t>{3});
  EXPECT_EQ(c.diff.a_there, 4);
  EXPECT_EQ(c.diff.b_there, 3);
  EXPECT_DOUBLE_EQ(*c.diff.mean_abs, 0.375);
  EXPECT_DOUBLE_EQ(*c.diff.mse, 1.25 / 4);
  EXPECT_DOUBLE_EQ(*c.diff.max_rel, 0.25);
  EXPECT_DOUBLE_EQ(*c.diff.rel_l2, std::sqrt(1.25 / 30));
  EXPECT_DOUBLE_EQ(*c.diff.norm_ratio, std::sqrt((1 + 6.25 + 9 + 9) / 30));
  EXPECT_DOUBLE_EQ(*c.diff.cosine, (1 + 5 + 9 + 12) / std::sqrt(30 * 25.25));
  EXPECT_EQ(c.diff.exceeding, 2U);
  EXPECT_DOUBLE_EQ(*c.a.mean, 2.5);
  EXPECT_DOUBLE_EQ(*c.a.std, std::sqrt(1.25));
}

TEST(Compare, NanOnOneSideIsNeverAMatch) {
  const Comparison c = compare_views(f32({1, kNan, 3}), f32({1, 2, 3}));
  EXPECT_EQ(c.status, Status::different);
  EXPECT_EQ(c.diff.nonfinite_mismatch, 1U);
  EXPECT_EQ(c.diff.compared, 2U);
  EXPECT_EQ(c.diff.rtol_needed, std::nullopt);
  EXPECT_EQ(c.a.nan, 1U);
}

// Nothing is farther off, so the place of the largest difference is the first of them.
TEST(Compare, NanOnOneSideIsTheLargestDifference) {
  const float inf = static_cast<float>(kInf);
  for (const auto& [a, b, at] : {std::tuple(f32({1, 2, kNan, 4}), f32({1, 9, 3, kNan}), 2U),
                                 {f32({1, 2, inf, 4}), f32({1, 2, -inf, 4}), 2U},
                                 {f32({kNan, 2}), f32({kNan, inf}), 1U}}) {
    const Comparison c = compare_views(a, b);
    EXPECT_EQ(c.diff.max_abs_at, std::vector<uint64_t>{at});
    EXPECT_FALSE(std::isfinite(*c.diff.a_there) && std::isfinite(*c.diff.b_there));
  }
  CompareOptions strict;
  strict.equal_nan = false;
  const Comparison c = compare_views(f32({1, kNan, 3}), f32({1, kNan, 4}), strict);
  EXPECT_EQ(c.diff.max_abs_at, std::vector<uint64_t>{1});
}

TEST(Compare, NanAtTheSamePlaceAgreesUnlessAskedOtherwise) {
  const View a = f32({1, kNan, static_cast<float>(kInf)});
  const Comparison agreeing = compare_views(a, a);
  EXPECT_EQ(agreeing.status, Status::identical);
  EXPECT_EQ(agreeing.diff.nonfinite_agreeing, 2U);
  CompareOptions strict;
  strict.equal_nan = false;
  EXPECT_EQ(compare_views(a, a, strict).status, Status::different);
}

TEST(Compare, InfinitiesOfOtherSignDoNotMatch) {
  const auto inf = static_cast<float>(kInf);
  EXPECT_EQ(compare_views(f32({inf}), f32({-inf})).diff.nonfinite_mismatch, 1U);
}

TEST(Compare, AllNanHasNoMetrics) {
  const Comparison c = compare_views(f32({kNan, kNan}), f32({kNan, 1}));
  EXPECT_EQ(c.diff.max_abs, std::nullopt);
  EXPECT_EQ(c.diff.cosine, std::nullopt);
  EXPECT_EQ(c.diff.rel_l2, std::nullopt);
  EXPECT_EQ(c.status, Status::different);
}

TEST(Compare, ZeroAndConstantTensorsLeaveAnglesUndefined) {
  const Comparison zero = compare_views(f32({0, 0}), f32({1, 2}));
  EXPECT_EQ(zero.diff.cosine, std::nullopt);
  EXPECT_EQ(zero.diff.norm_ratio, std::nullopt);
  EXPECT_EQ(zero.diff.rel_l2, kInf);
  EXPECT_EQ(zero.diff.rtol_needed, std::nullopt);
  const Comparison constant = compare_views(f32({3, 3, 3}), f32({3, 3, 4}));
  EXPECT_EQ(constant.diff.pcc, std::nullopt);
  EXPECT_NE(constant.diff.cosine, std::nullopt);
  const Comparison both_zero = compare_views(f32({0, 0}), f32({0, -0.0F}));
  EXPECT_EQ(both_zero.diff.rel_l2, 0);
  EXPECT_EQ(both_zero.status, Status::identical);
}

TEST(Compare, EmptyTensorsAreIdentical) {
  const View empty = view_of<float>(DType::f32, {0, 4}, {});
  const Comparison c = compare_views(empty, empty);
  EXPECT_EQ(c.status, Status::identical);
  EXPECT_EQ(c.diff.max_abs, std::nullopt);
}

TEST(Compare, SameValuesInAnotherTypeAreEqualNotIdentical) {
  const View wide = view_of<double>(DType::f64, {2}, {1.5, -2});
  EXPECT_EQ(compare_views(f32({1.5, -2}), wide).status, Status::equal);
}

TEST(Compare, LargeIntegersCompareExactly) {
  const int64_t large = (int64_t{1} << 53) + 1;
  const View a = view_of<int64_t>(DType::i64, {2}, {large, INT64_MIN});
  const View b = view_of<int64_t>(DType::i64, {2}, {large - 1, INT64_MIN});
  const Comparison c = compare_views(a, b);
  EXPECT_EQ(c.status, Status::different);
  EXPECT_EQ(c.diff.max_abs, 1);
  EXPECT_EQ(c.diff.equal, 1U);
  EXPECT_EQ(c.diff.ulp_max, std::nullopt);
  const View u = view_of<uint64_t>(DType::u64, {1}, {UINT64_MAX});
  const View v = view_of<uint64_t>(DType::u64, {1}, {UINT64_MAX - 1});
  EXPECT_EQ(compare_views(u, v).diff.max_abs, 1);
}

TEST(Compare, ComplexUsesTheModulus) {
  const View a = view_of<float>(DType::c64, {2}, {1, 1, 0, 2});
  const View b = view_of<float>(DType::c64, {2}, {4, 5, 0, 2});
  const Comparison c = compare_views(a, b);
  EXPECT_EQ(c.diff.compared, 2U);
  EXPECT_DOUBLE_EQ(*c.diff.max_abs, 5);
  EXPECT_DOUBLE_EQ(*c.diff.mean_abs, 2.5);
  EXPECT_EQ(c.diff.equal, 1U);
  EXPECT_EQ(c.a.finite, 4U);
}

TEST(Compare, BoolsCompareExactly) {
  const View a = view_of<uint8_t>(DType::boolean, {3}, {1, 0, 1});
  const View b = view_of<uint8_t>(DType::boolean, {3}, {1, 1, 1});
  EXPECT_EQ(compare_views(a, b).diff.exceeding, 1U);
}

TEST(Compare, UlpCountsInStepsOfTheCoarserType) {
  // 1 and the next bf16, as f32 against bf16.
  const View a = f32({1.0F});
  const View b = view_of<uint16_t>(DType::bf16, {1}, {0x3f81});
  EXPECT_EQ(compare_views(a, b).diff.ulp_max, 1U);
  // f8_e4m3: 448 and 416 are neighbours.
  const View c = view_of<uint8_t>(DType::f8_e4m3, {1}, {0x7e});
  const View d = view_of<uint8_t>(DType::f8_e4m3, {1}, {0x7d});
  EXPECT_EQ(compare_views(c, d).diff.ulp_max, 1U);
}

// Values of 1000 with a spread of 0.01: E[x²] - E[x]² in doubles would lose it.
TEST(Compare, KeepsASmallSpreadAroundALargeMean) {
  std::mt19937 random(1);
  std::normal_distribution<float> noise(0, 0.01F);
  std::vector<float> values(400'000);
  for (float& value : values) value = 1000 + noise(random);
  long double mean = 0;
  for (const float value : values) mean += value;
  mean /= values.size();
  long double m2 = 0;
  for (const float value : values) m2 += (value - mean) * (value - mean);
  const double want = static_cast<double>(std::sqrt(m2 / values.size()));
  const Stats stats = statistics(f32(values)).value();
  EXPECT_NEAR(*stats.std, want, 1e-9 * want);
  EXPECT_NEAR(*stats.mean, static_cast<double>(mean), 1e-12 * 1000);
}

std::vector<float> noise(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

TEST(Compare, IsTheSameForAnyNumberOfThreads) {
  const View a = f32(noise(3'000'000, 1));
  const View b = f32(noise(3'000'000, 2));
  set_threads(1);
  const Comparison one = compare_views(a, b);
  for (const std::size_t count : {2, 3, 8}) {
    set_threads(count);
    const Comparison many = compare_views(a, b);
    EXPECT_EQ(many.diff.mean_abs, one.diff.mean_abs);
    EXPECT_EQ(many.diff.cosine, one.diff.cosine);
    EXPECT_EQ(many.diff.mean_rel, one.diff.mean_rel);
    EXPECT_EQ(many.diff.max_abs_at, one.diff.max_abs_at);
    EXPECT_EQ(many.a.std, one.a.std);
  }
  set_threads(0);
}

TEST(Compare, MirrorsWhenTheSidesSwap) {
  const View a = f32(noise(70'001, 3));
  const View b = f32(noise(70'001, 4));
  const Comparison forth = compare_views(a, b);
  const Comparison back = compare_views(b, a);
  EXPECT_EQ(forth.diff.max_abs, back.diff.max_abs);
  EXPECT_EQ(forth.diff.max_abs_at, back.diff.max_abs_at);
  EXPECT_EQ(forth.diff.max_rel, back.diff.max_rel);
  EXPECT_EQ(forth.diff.ulp_max, back.diff.ulp_max);
  EXPECT_NEAR(*forth.diff.cosine, *back.diff.cosine, 1e-15);
  EXPECT_EQ(forth.a.mean, back.b.mean);
}

TEST(Compare, FindsOneCorruptedElementAnywhere) {
  const std::vector<float> good = noise(140'003, 5);
  for (const std::size_t at : {0, 1, 2047, 2048, 65'535, 65'536, 131'072, 140'002}) {
    std::vector<float> bad = good;
    bad[at] += 0.5F;
    const Comparison c = compare_views(f32(good), f32(bad));
    EXPECT_EQ(c.status, Status::different);
    EXPECT_EQ(c.diff.max_abs_at, std::vector<uint64_t>{at});
    EXPECT_EQ(c.diff.equal, good.size() - 1);
  }
}

TEST(Compare, FirstOfEqualMaximaWins) {
  std::vector<float> a(200'000, 0.0F);
  std::vector<float> b = a;
  for (const std::size_t at : {150'000, 70'000, 3000}) b[at] = 1;
  EXPECT_EQ(compare_views(f32(a), f32(b)).diff.max_abs_at, std::vector<uint64_t>{3000});
}

// Infinities scattered as in an attention mask: the finite rest is measured as if they were not
// there.
TEST(Compare, MeasuresAroundValuesThatAreNotFinite) {
  std::vector<float> a = noise(9000, 6);
  std::vector<float> b = noise(9000, 7);
  std::vector<float> finite_a;
  std::vector<float> finite_b;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (i % 5 == 2) a[i] = b[i] = -static_cast<float>(kInf);
    if (i % 700 == 0) b[i] = kNan;
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) continue;
    finite_a.push_back(a[i]);
    finite_b.push_back(b[i]);
  }
  const Comparison holes = compare_views(f32(a), f32(b));
  const Comparison whole = compare_views(f32(finite_a), f32(finite_b));
  EXPECT_EQ(holes.diff.compared, finite_a.size());
  EXPECT_EQ(holes.diff.max_abs, whole.diff.max_abs);
  // The worst element is the first whose sides disagree on being finite.
  EXPECT_EQ(holes.diff.a_there, a[0]);
  EXPECT_TRUE(std::isnan(*holes.diff.b_there));
  EXPECT_EQ(holes.diff.exceeding, whole.diff.exceeding);
  EXPECT_EQ(holes.diff.ulp_max, whole.diff.ulp_max);
  EXPECT_NEAR(*holes.diff.cosine, *whole.diff.cosine, 1e-12);
  EXPECT_EQ(holes.a.inf, 1800U);
  EXPECT_EQ(holes.b.nan, 13U);
  EXPECT_EQ(holes.diff.nonfinite_agreeing + holes.diff.nonfinite_mismatch,
            a.size() - finite_a.size());
}

TEST(Compare, ReadsMisalignedElements) {
  std::string memory(1 + 64 * 4, '\0');
  for (int i = 0; i < 64; ++i) {
    const float value = static_cast<float>(i);
    std::memcpy(memory.data() + 1 + 4 * i, &value, 4);
  }
  const ByteSource source = ByteSource(bytes_of(std::move(memory))).slice(1, 256);
  const View view = contiguous_view(DType::f32, {64}, source).value();
  EXPECT_DOUBLE_EQ(*statistics(view).value().mean, 31.5);
  EXPECT_EQ(compare_views(view, view).status, Status::identical);
}

// Every layout of one matrix against another gives what the row-major ones give.
TEST(Compare, GivesTheSameForEveryLayout) {
  const Shape shape = {70, 31, 90};
  const std::vector<float> values_a = noise(70 * 31 * 90, 8);
  std::vector<float> values_b = values_a;
  for (std::size_t i = 0; i < values_b.size(); i += 3) values_b[i] *= 1.001F;
  values_b[12345] += 4;
  const View plain_a = view_of(DType::f32, shape, values_a);
  const View plain_b = view_of(DType::f32, shape, values_b);
  const Comparison want = compare_views(plain_a, plain_b);

  // b stored with its axes in another order, and viewed back.
  const std::size_t orders[][3] = {{0, 2, 1}, {1, 0, 2}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}};
  for (const auto& order : orders) {
    Shape stored_shape;
    for (const std::size_t axis : order) stored_shape.push_back(shape[axis]);
    const Strides stored = contiguous_strides(stored_shape);
    Strides strides(3);
    for (std::size_t at = 0; at < 3; ++at) strides[order[at]] = stored[at];
    std::vector<float> moved(values_b.size());
    for (std::size_t i = 0; i < values_b.size(); ++i) {
      const std::vector<uint64_t> index = index_at(shape, i);
      int64_t to = 0;
      for (std::size_t axis = 0; axis < 3; ++axis)
        to += static_cast<int64_t>(index[axis]) * strides[axis];
      moved[static_cast<std::size_t>(to)] = values_b[i];
    }
    View b = view_of(DType::f32, shape, moved);
    b.parts[0].strides = strides;
    for (const bool swap : {false, true}) {
      const Comparison got = swap ? compare_views(b, plain_a) : compare_views(plain_a, b);
      EXPECT_EQ(got.diff.max_abs, want.diff.max_abs);
      EXPECT_EQ(got.diff.max_abs_at, want.diff.max_abs_at) << order[0] << order[1] << order[2];
      EXPECT_EQ(got.diff.equal, want.diff.equal);
      EXPECT_NEAR(*got.diff.mean_abs, *want.diff.mean_abs, 1e-12);
      EXPECT_NEAR(*got.diff.cosine, *want.diff.cosine, 1e-12);
      if (!swap) {
        EXPECT_EQ(got.diff.exceeding, want.diff.exceeding);
      }
    }
  }
}

// Elements in blocks (q8_0: a scale and 32 steps) against what they decode to, turned.
TEST(Compare, TurnsBlocksOnEitherSide) {
  constexpr uint64_t kRows = 70, kColumns = 320;
  std::mt19937 random(5);
  std::string blocks;
  std::vector<float> turned(kRows * kColumns);
  for (uint64_t at = 0; at < kRows * kColumns; ++at) {
    if (at % 32 == 0) blocks += std::string("\x00\x38", 2);  // 0.5 as float16.
    blocks += static_cast<char>(random());
    const auto step = static_cast<float>(static_cast<signed char>(blocks.back()));
    turned[at % kColumns * kRows + at / kColumns] = 0.5F * step;
  }
  View stored =
      contiguous_view(DType::q8_0, {kRows, kColumns}, ByteSource(bytes_of(blocks))).value();
  std::swap(stored.shape[0], stored.shape[1]);
  std::swap(stored.parts[0].shape[0], stored.parts[0].shape[1]);
  std::swap(stored.parts[0].strides[0], stored.parts[0].strides[1]);
  const View plain = view_of(DType::f32, {kColumns, kRows}, turned);
  EXPECT_EQ(compare_views(plain, stored).diff.max_abs, 0);
  EXPECT_EQ(compare_views(stored, plain).diff.max_abs, 0);
  turned[17] += 1;
  const View changed = view_of(DType::f32, {kColumns, kRows}, turned);
  EXPECT_EQ(compare_views(changed, stored).diff.max_abs, 1);
  EXPECT_EQ(compare_views(changed, stored).diff.max_abs_at, (std::vector<uint64_t>{0, 17}));
}

TEST(Compare, FirstOfEqualMaximaWinsInEveryLayout) {
  const std::vector<float> zeros(600 * 600, 0.0F);
  std::vector<float> ones = zeros;
  ones[599 * 600 + 3] = ones[5 * 600 + 599] = ones[300 * 600 + 300] = 1;  // Stored transposed.
  View b = view_of(DType::f32, {600, 600}, ones);
  b.parts[0].strides = {1, 600};
  const Comparison c = compare_views(view_of(DType::f32, {600, 600}, zeros), b);
  EXPECT_EQ(c.diff.max_abs_at, (std::vector<uint64_t>{3, 599}));
}

TEST(Tolerance, ComesFromTheCoarserType) {
  EXPECT_EQ(tolerance_for(DType::f32, DType::bf16, {}).rtol, 1.6e-2);
  EXPECT_EQ(tolerance_for(DType::i32, DType::f32, {}).rtol, 1.3e-6);
  EXPECT_EQ(tolerance_for(DType::i32, DType::i64, {}).atol, 0);
  CompareOptions options;
  options.atol = 0.5;
  EXPECT_EQ(tolerance_for(DType::f64, DType::f64, options).atol, 0.5);
}

}  // namespace
}  // namespace tensordiff
