// Clean runs raise no alarm, whatever the type, the depth and the order of sums.

#include "diagnose/verdict/judge.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "diagnose/diagnose.h"
#include "diagnose/noise/casts.h"
#include "diagnose/noise/roundoff.h"
#include "diagnose/noise/structure.h"
#include "diagnose/toys/toy_model.h"
#include "diagnose/toys/toy_steps.h"
#include "diagnose/toys/toy_values.h"

namespace tensordiff {
namespace {

// The names of the pairs that were called a bug.
std::string alarms(const ToyShape& shape, DType dtype_a, DType dtype_b, unsigned seed) {
  ToyModel model(shape, seed);
  const auto a = model.run(dtype_a, false, {});
  const auto b = model.run(dtype_b, true, {});
  const std::vector<Site> sites = sites_of(a, dtype_a, b, dtype_b);
  const Insight insight = diagnose(sites, {});
  EXPECT_TRUE(insight.judged);
  std::string names;
  for (const Outcome& outcome : insight.outcomes)
    if (outcome.verdict == Verdict::bug) names += sites[outcome.pair].a.name + " ";
  EXPECT_EQ(insight.first.has_value(), !names.empty());
  return names;
}

TEST(Noise, RaisesNoAlarmOnCleanRuns) {
  for (const auto& [a, b] : {std::pair{DType::f32, DType::f32},
                             {DType::f32, DType::bf16},
                             {DType::f32, DType::f16},
                             {DType::bf16, DType::bf16},
                             {DType::f16, DType::bf16}}) {
    for (unsigned seed = 1; seed <= 5; ++seed)
      EXPECT_EQ(alarms({}, a, b, seed), "") << name_of(a) << " " << name_of(b) << " seed " << seed;
  }
}

TEST(Noise, RaisesNoAlarmOnDeepCleanRuns) {
  ToyShape deep;
  deep.layers = 80;
  deep.tokens = 9;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
    for (unsigned seed = 1; seed <= 2; ++seed)
      EXPECT_EQ(alarms(deep, DType::f32, dtype, seed), "") << name_of(dtype) << " seed " << seed;
}

// Large scores amplify the rounding of queries and keys; no step is wrong for that.
TEST(Noise, RaisesNoAlarmWhereAttentionIsSharp) {
  ToyShape sharp;
  sharp.layers = 12;
  for (const double sharpness : {4.0, 12.0}) {
    sharp.sharpness = sharpness;
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
      for (unsigned seed = 1; seed <= 3; ++seed)
        EXPECT_EQ(alarms(sharp, DType::f32, dtype, seed), "")
            << name_of(dtype) << " sharpness " << sharpness << " seed " << seed;
  }
}

TEST(Noise, SeesTheTypeBehindTheType) {
  const Values values = {0.3, 1.7, -2.9, 0.123, 5.5, 1e-3};
  Values many;
  for (int i = 1; i <= 40; ++i)
    for (const double value : values) many.push_back(value * i);
  Values rounded = many;
  for (double& value : rounded) value = as_stored(value, DType::bf16);
  EXPECT_DOUBLE_EQ(roundoff_of(view_of({many.size()}, many, DType::f32)), std::ldexp(1, -24));
  EXPECT_DOUBLE_EQ(roundoff_of(view_of({many.size()}, rounded, DType::f32)), std::ldexp(1, -8));
  EXPECT_DOUBLE_EQ(roundoff_of(view_of({many.size()}, rounded, DType::bf16)), std::ldexp(1, -8));
}

// Attention computed again comes out the same to the noise, and was rounded to 3 bits all the same.
TEST(Noise, SeesACastOfWhatIsRightToTheNoise) {
  for (const uint64_t layers : {2, 3}) {
    ToyShape shape;
    shape.layers = layers;
    ToyModel model(shape, 8);
    ToyMistakes cast;
    cast.after["post_attn"] = [](Values& values) {
      for (double& value : values) {
        const double step = std::ldexp(1.0, std::max(std::ilogb(value), -6) - 3);
        value = std::nearbyint(value / step) * step;
      }
    };
    const auto a = model.run(DType::f32, false, {}), b = model.run(DType::bf16, true, {cast});
    const std::vector<Site> sites = sites_of(a, DType::f32, b, DType::bf16);
    const Insight insight = diagnose(sites, {});
    ASSERT_TRUE(insight.first);
    EXPECT_EQ(sites[insight.first->pair].a.name, "1_post_attn");
    const auto found = std::ranges::find(insight.findings, insight.first->pair, &Finding::pair);
    ASSERT_NE(found, insight.findings.end());
    EXPECT_EQ(found->code, "cast") << found->explanation;
  }
}

// Layers that are no numbers any more say nothing of how noise grows in the others.
TEST(Noise, BlamesNoLayerForThoseThatAreLost) {
  ToyShape shape;
  shape.layers = 5;
  ToyModel model(shape, 8);
  // Another kernel, whose noise grows at the MLP of every layer.
  std::vector<ToyMistakes> made(shape.layers);
  for (uint64_t layer = 0; layer < shape.layers; ++layer) {
    made[layer].layer = layer;
    made[layer].after["post_mlp"] = [](Values& values) {
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] *= 1 + 0.06 * std::sin(17.0 * static_cast<double>(i));
    };
  }
  made[1].after["post_ln_pre_attn"] = [&](Values& values) {
    std::fill_n(values.begin() + std::ptrdiff_t(3 * shape.width()), shape.width(), NAN);
  };
  const auto a = model.run(DType::f32, false, {}), b = model.run(DType::bf16, true, made);
  const std::vector<Site> sites = sites_of(a, DType::f32, b, DType::bf16);
  const Insight insight = diagnose(sites, {});
  ASSERT_TRUE(insight.first);
  EXPECT_EQ(sites[insight.first->pair].a.name, "1_post_ln_pre_attn");
}

// Attention does not see what is added to all keys: behind it everything agrees again.
TEST(Noise, EndsWhereAMistakeComesToNothing) {
  ToyModel model({}, 8);
  ToyMistakes added, faint;
  added.layer = 0, faint.layer = 2;
  added.after["key_final"] = [](Values& values) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += std::cos(double(i % 8));
  };
  faint.after["post_mlp"] = [](Values& values) {
    for (double& value : values) value *= 1.000002;
  };
  auto a = model.run(DType::f32, false, {}), b = model.run(DType::f32, true, {added, faint});
  for (auto* dumps : {&a, &b})
    std::erase_if(*dumps, [](const ToyModel::Dump& dump) { return dump.stage == "output"; });
  const std::vector<Site> sites = sites_of(a, DType::f32, b, DType::f32);
  const Insight insight = diagnose(sites, {});
  ASSERT_TRUE(insight.first);
  EXPECT_EQ(sites[insight.first->pair].a.name, "0_key_final");
  ASSERT_FALSE(insight.next.empty());
  EXPECT_EQ(sites[insight.next[0].pair].a.name, "2_post_mlp");
}

// What comes in is off by so much that the weight of a norm could be missing for all its error
// says; but it stands out of other layers, and is not what its own inputs give.
TEST(Noise, HidesNoNormThatIsOutOfLine) {
  ToyShape shape;
  shape.layers = 7, shape.tokens = 24;
  for (const uint64_t wrong : {uint64_t{4}, shape.layers}) {
    ToyModel model(shape, 3);
    std::vector<ToyMistakes> made(shape.layers);
    for (uint64_t layer = 0; layer < shape.layers; ++layer) {
      made[layer].layer = layer;
      made[layer].weighted = layer != wrong;
      const auto noise = [=](double size) {
        return [=](Values& values) {
          std::mt19937 random(static_cast<unsigned>(layer));
          std::normal_distribution<double> normal(0, size);
          for (double& value : values) value *= 1 + normal(random);
        };
      };
      if (layer == 0) made[layer].after["post_ln_pre_attn"] = noise(0.04);
      made[layer].after["post_mlp"] = noise(0.12);
    }
    const auto a = without_stream(model.run(DType::bf16, false, {}));
    const auto b = without_stream(model.run(DType::bf16, true, made));
    const std::vector<Site> sites = sites_of(a, DType::bf16, b, DType::bf16);
    const Insight insight = diagnose(sites, {});
    EXPECT_EQ(insight.first ? sites[insight.first->pair].a.name : "none",
              wrong == 4 ? "4_post_ln_pre_attn" : "none");
  }
}

TEST(Noise, TrustsTheNoiseRunOverTheModel) {
  ToyModel model({}, 7);
  const auto a = model.run(DType::f32, false, {});
  const auto b = model.run(DType::bf16, true, {});
  std::vector<Site> sites = sites_of(a, DType::f32, b, DType::f32);
  for (Site& site : sites) site.noise = 2 * site.comparison.diff.rel_l2.value_or(0);
  EXPECT_FALSE(diagnose(sites, {}).first);
  for (Site& site : sites) site.noise = 0.2 * site.comparison.diff.rel_l2.value_or(0);
  ASSERT_TRUE(diagnose(sites, {}).first);
}

// Beside −10³⁸, with which a scan begins, every error would vanish.
TEST(Noise, IsMeasuredWithoutNumbersThatStandForInfinity) {
  Values a = random_values(16 * 24, 1), b = a;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (i % 3 == 0)
      a[i] = b[i] = -1e38;
    else
      b[i] *= 1.001;
  }
  tensordiff::Run run = make_run(sites_of({{"blocks.0.scan", a, b}, {"blocks.0", a, b}}), {});
  judge(run);
  EXPECT_NEAR(run.sites[0].error, 0.001, 1e-5);
}

}  // namespace
}  // namespace tensordiff
