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

TEST(Checkpoint, KnowsACast) {
  const Values values = random_values(640, 3);
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const Insight insight = diagnose_weights({20, 32}, values, values, dtype);
    ASSERT_EQ(insight.findings.size(), 1U);
    EXPECT_EQ(insight.findings[0].code, "cast");
    EXPECT_EQ(std::get<std::string>(insight.findings[0].parameters[0].value), name_of(dtype));
  }
}

TEST(Checkpoint, KnowsQuantization) {
  for (const int levels : {7, 127}) {
    const Values a = random_values(64 * 64, 4);
    Values b = a;
    for (std::size_t at = 0; at < b.size(); at += 32) {
      double most = 0;
      for (std::size_t i = at; i < at + 32; ++i) most = std::max(most, std::abs(a[i]));
      const double step = most / levels;
      for (std::size_t i = at; i < at + 32; ++i) b[i] = std::nearbyint(a[i] / step) * step;
    }
    const Insight insight = diagnose_weights({64, 64}, a, b, DType::f32);
    ASSERT_EQ(insight.findings.size(), 1U);
    EXPECT_EQ(insight.findings[0].code, "quantization");
    EXPECT_EQ(insight.findings[0].explanation,
              fmt::format("b is a on a grid of {} bits in blocks of 32", levels < 8 ? 4 : 8));
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
