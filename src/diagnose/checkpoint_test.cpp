// Differences between the weights of two checkpoints.

#include <gtest/gtest.h>

#include "compare/beyond.h"
#include "diagnose/diagnose.h"
#include "diagnose/toys/toy_model.h"

namespace tensordiff {
namespace {

// Pairs of a checkpoint: there is no order of computing, each is explained by itself.
Insight diagnose_weights(const Shape& shape, const Values& a, const Values& b, DType dtype) {
  Site site;
  site.a.name = site.b.name = "model.layers.0.mlp.up_proj.weight";
  site.a.place = site.b.place = read_place(site.a.name);
  site.views.a = view_of(shape, a, DType::f32);
  site.views.b = view_of(shape, b, dtype);
  Beyond beyond;
  site.comparison = compare(site.views, {}, beyond).value();
  site.beyond = std::make_shared<const Beyond>(std::move(beyond));
  if (site.comparison.status == Status::close) site.comparison.status = Status::different;
  return diagnose({site}, {});
}

Values random_values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Values values(count);
  for (double& value : values) value = static_cast<float>(normal(random));
  return values;
}

// Of a weight: up to 40 rows of 32 to 160 features.
Shape random_shape(unsigned seed) {
  std::mt19937 random(seed);
  const uint64_t rows = 8 + random() % 33;
  return {rows, 32 * (1 + random() % 5)};
}

TEST(Checkpoint, KnowsACast) {
  for (unsigned seed = 1; seed <= 6; ++seed) {
    const Shape shape = random_shape(seed);
    const Values values = random_values(shape[0] * shape[1], seed);
    for (const DType dtype : {DType::bf16, DType::f16}) {
      const Insight insight = diagnose_weights(shape, values, values, dtype);
      ASSERT_EQ(insight.findings.size(), 1U);
      EXPECT_EQ(insight.findings[0].code, "cast");
      EXPECT_EQ(std::get<std::string>(insight.findings[0].parameters[0].value), name_of(dtype));
    }
  }
}

TEST(Checkpoint, KnowsQuantization) {
  unsigned seed = 0;
  for (const int levels : {7, 127}) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      // Narrower types blur a grid of 8 bits.
      if (levels > 100 && dtype != DType::f32) continue;
      const Shape shape = random_shape(++seed);
      const Values a = random_values(shape[0] * shape[1], seed);
      Values b = a;
      for (std::size_t at = 0; at < b.size(); at += 32) {
        double most = 0;
        for (std::size_t i = at; i < at + 32; ++i) most = std::max(most, std::abs(a[i]));
        const double step = most / levels;
        for (std::size_t i = at; i < at + 32; ++i) b[i] = std::nearbyint(a[i] / step) * step;
      }
      const Insight insight = diagnose_weights(shape, a, b, dtype);
      SCOPED_TRACE(fmt::format("{} levels in {}, seed {}", levels, name_of(dtype), seed));
      ASSERT_EQ(insight.findings.size(), 1U);
      EXPECT_EQ(insight.findings[0].code, "quantization") << insight.findings[0].explanation;
      EXPECT_EQ(insight.findings[0].explanation,
                fmt::format("B is A quantized to {} bits in blocks of 32", levels < 8 ? 4 : 8));
    }
  }
}

std::string told(const Insight& insight) {
  return insight.findings.empty()
             ? "nothing"
             : insight.findings[0].code + ": " + insight.findings[0].explanation;
}

// Any two round numbers are on the grid of some format.
TEST(Checkpoint, CallsNoTwoNumbersACast) {
  for (const auto& [a, b] : {std::pair(1.5, 1.25), {1.3, 1.25}, {3.0, 2.0}})
    EXPECT_EQ(told(diagnose_weights({}, {a}, {b}, DType::f32)), "nothing") << a;
}

// A value that was on the grid before is not what rounding changed.
TEST(Checkpoint, CallsAFlippedBitNoCast) {
  Values a(4096), b;
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = i % 3 == 0;
  b = a;
  b[70] = 1 - b[70];
  const Insight insight = diagnose_weights({64, 64}, a, b, DType::f32);
  ASSERT_EQ(insight.findings.size(), 1U);
  EXPECT_EQ(told(insight), "region: the difference is confined to row 1 of 64");
  EXPECT_EQ(insight.findings[0].residual_after, 0);
}

// Larger than what a diagnosis holds: 1200 rows, of which it reads 512.
constexpr uint64_t kRows = 1200, kColumns = 1024;

TEST(Checkpoint, FindsElementsInAnyRowOfALargeWeight) {
  const Values a = random_values(kRows * kColumns, 4);
  for (const uint64_t row : {uint64_t{5}, uint64_t{700}, kRows - 1}) {
    Values b = a;
    b[row * kColumns + 7] = 4;
    const Insight insight = diagnose_weights({kRows, kColumns}, a, b, DType::f32);
    EXPECT_TRUE(told(insight).starts_with(
        fmt::format("region: the difference is confined to row {}{} of 1200 (1 element: [{}, 7] ",
                    row, row + 1 == kRows ? " (the tail)" : "", row)))
        << told(insight);
    EXPECT_EQ(insight.findings.at(0).residual_after, 0);
  }
}

TEST(Checkpoint, CountsTheRowsOfTheWholeWeight) {
  const Values a = random_values(kRows * kColumns, 4);
  Values b = a;
  for (const uint64_t row : {5, 900})
    for (uint64_t i = 0; i < 9; ++i) b[row * kColumns + i] = 4;
  EXPECT_EQ(told(diagnose_weights({kRows, kColumns}, a, b, DType::f32)),
            "region: the difference is confined to rows 5, 900 of 1200");
  // More than is read again: known by its rows.
  for (uint64_t i = 600 * kColumns; i < b.size(); ++i) b[i] = 0;
  for (const uint64_t row : {5, 900})
    for (uint64_t i = 0; i < 9; ++i) b[row * kColumns + i] = a[row * kColumns + i];
  EXPECT_TRUE(
      told(diagnose_weights({kRows, kColumns}, a, b, DType::f32))
          .starts_with("region: the difference is confined to rows 600–1199 (the tail) of"));
}

TEST(Checkpoint, CountsNanOfBothSidesInTheWholeWeight) {
  Values a = random_values(kRows * kColumns, 4), b = a;
  b[1100 * kColumns + 3] = NAN;
  EXPECT_EQ(told(diagnose_weights({kRows, kColumns}, a, b, DType::f32)),
            "nonfinite: B has 1 NaN where A is finite, in row 1100");
  a[7 * kColumns] = a[7 * kColumns + 1] = INFINITY;
  EXPECT_EQ(told(diagnose_weights({kRows, kColumns}, a, b, DType::f32)),
            "nonfinite: NaN/Inf mismatch at 3 elements: A has 2 Inf, B has 1 NaN, in rows 7, 1100");
}

TEST(Checkpoint, FindsAnotherOrderOfAllRowsOfALargeWeight) {
  const Values a = random_values(kRows * kColumns, 4);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Values b(a.size());
    for (uint64_t row = 0; row < kRows; ++row)
      std::copy_n(a.begin() + static_cast<std::ptrdiff_t>(row * 7 % kRows * kColumns), kColumns,
                  b.begin() + static_cast<std::ptrdiff_t>(row * kColumns));
    const Insight insight = diagnose_weights({kRows, kColumns}, a, b, dtype);
    // Six rows are where they were: those with 6 · row a multiple of 1200.
    EXPECT_EQ(told(insight),
              "row_permutation: 1194 of 1200 rows of B are those of A in another order");
  }
}

TEST(Checkpoint, CallsOtherRowsNoOtherOrder) {
  const Insight insight = diagnose_weights({kRows, kColumns}, random_values(kRows * kColumns, 4),
                                           random_values(kRows * kColumns, 5), DType::f32);
  EXPECT_EQ(told(insight), "nothing");
}

TEST(Checkpoint, KnowsATransposeThatTheShapeHides) {
  const Values a = random_values(24 * 24, 5);
  Values b(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) b[i] = a[i % 24 * 24 + i / 24];
  const Insight insight = diagnose_weights({24, 24}, a, b, DType::f32);
  ASSERT_EQ(insight.findings.size(), 1U);
  EXPECT_EQ(insight.findings[0].code, "axis_permutation");
}

}  // namespace
}  // namespace tensordiff
