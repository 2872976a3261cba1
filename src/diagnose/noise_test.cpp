// Clean runs raise no alarm, whatever the type, the depth and the order of sums.

#include "diagnose/noise.h"

#include <gtest/gtest.h>

#include "diagnose/diagnose.h"
#include "diagnose/toy_model.h"

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
    if (outcome.verdict == Verdict::bug) names += sites[outcome.pair].name_a + " ";
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
  ToyModel model({}, 8);
  ToyMistakes cast;
  cast.after["post_attn"] = [](Values& values) {
    for (double& value : values) {
      const double step = std::ldexp(1.0, std::ilogb(value) - 3);
      value = std::nearbyint(value / step) * step;
    }
  };
  const auto a = model.run(DType::f32, false, {}), b = model.run(DType::bf16, true, {cast});
  const std::vector<Site> sites = sites_of(a, DType::f32, b, DType::bf16);
  const Insight insight = diagnose(sites, {});
  ASSERT_TRUE(insight.first);
  EXPECT_EQ(sites[insight.first->pair].name_a, "1_post_attn");
}

// Five roundings may be noise, but not where both runs agree to the bit otherwise.
TEST(Noise, SeesWhatIsOffWhereAllBeforeItAgrees) {
  for (const DType dtype : {DType::f16, DType::bf16})
    for (const std::string stage : {"value", "key_final", "post_attn_pre_resid"}) {
      ToyModel model({}, 8);
      ToyMistakes off;
      const double roundoff = dtype == DType::bf16 ? 0x1p-8 : 0x1p-11;
      off.after[stage] = [&](Values& values) {
        for (std::size_t i = 0; i < values.size(); ++i)
          values[i] *= 1 + 5 * roundoff * (i * 7919 % 13 < 6 ? -1 : 1);
      };
      const auto a = model.run(dtype, false, {}), b = model.run(dtype, false, {off});
      const std::vector<Site> sites = sites_of(a, dtype, b, dtype);
      const Insight insight = diagnose(sites, {});
      ASSERT_TRUE(insight.first) << name_of(dtype) << " " << stage;
      EXPECT_EQ(sites[insight.first->pair].name_a, "1_" + stage) << name_of(dtype);
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

}  // namespace
}  // namespace tensordiff
