// Differences between the weights of two checkpoints.

#include <gtest/gtest.h>

#include "diagnose/diagnose.h"
#include "diagnose/toy_model.h"

namespace tensordiff {
namespace {

// Pairs of a checkpoint: there is no order of computing, each is explained by itself.
Insight diagnose_weights(const Shape& shape, const Values& a, const Values& b, DType dtype) {
  Site site;
  site.name_a = site.name_b = "model.layers.0.mlp.up_proj.weight";
  site.place_a = site.place_b = read_place(site.name_a);
  site.views.a = view_of(shape, a, DType::f32);
  site.views.b = view_of(shape, b, dtype);
  site.comparison = compare(site.views).value();
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
                fmt::format("b is a on a grid of {} bits in blocks of 32", levels < 8 ? 4 : 8));
    }
  }
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
