#include "diagnose/noise/exactness.h"

#include <gtest/gtest.h>

#include "diagnose/diagnose.h"
#include "diagnose/toys/toy_model.h"

namespace tensordiff {
namespace {

// Five roundings may be noise, but not where both runs agree to the bit otherwise.
TEST(Exactness, SeesWhatIsOffWhereAllBeforeItAgrees) {
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
      EXPECT_EQ(sites[insight.first->pair].a.name, "1_" + stage) << name_of(dtype);
    }
}

// Where queries and values agree to the bit, so should keys.
TEST(Exactness, SeesOneProjectionOfThreeThatIsOff) {
  ToyModel model({}, 8);
  ToyMistakes off;
  off.layer = 0;
  off.after["key"] = [](Values& values) {
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] *= 1 + 0x1p-7 * (i * 7919 % 13 < 6 ? -1 : 1);
  };
  const auto a = model.run(DType::bf16, false, {}), b = model.run(DType::bf16, false, {off});
  const std::vector<Site> sites = sites_of(a, DType::bf16, b, DType::bf16);
  const Insight insight = diagnose(sites, {});
  ASSERT_TRUE(insight.first);
  EXPECT_EQ(sites[insight.first->pair].a.name, "0_key");
}

// Noise is alike in queries, keys and values; what is as loud as noise may be elsewhere stands out,
// though it be so in all layers.
TEST(Exactness, SeesOneProjectionThatIsLouderThanTheOthers) {
  for (const std::string stage : {"query", "key", "value"}) {
    ToyModel model({}, 8);
    std::vector<ToyMistakes> off(ToyShape{}.layers);
    for (std::size_t layer = 0; layer < off.size(); ++layer) {
      off[layer].layer = layer;
      off[layer].after[stage] = [&](Values& values) {
        for (std::size_t i = 0; i < values.size(); ++i)
          values[i] *= 1 + 9 * 0x1p-11 * (i * 7919 % 13 < 6 ? -1 : 1);
      };
    }
    const auto a = model.run(DType::f32, false, {}), b = model.run(DType::f16, true, off);
    const std::vector<Site> sites = sites_of(a, DType::f32, b, DType::f16);
    const Insight insight = diagnose(sites, {});
    ASSERT_TRUE(insight.first) << stage;
    EXPECT_EQ(sites[insight.first->pair].a.name, "0_" + stage);
  }
}

}  // namespace
}  // namespace tensordiff
