#include "diagnose/noise/norms.h"

#include <gtest/gtest.h>

#include "diagnose/toys/toy_model.h"

namespace tensordiff {
namespace {

constexpr uint64_t kTokens = 20, kFeatures = 64;

// A tensor in f32 and what a bf16 side makes of it, after `change` of each value.
std::optional<double> shrink(unsigned seed,
                             const std::function<double(uint64_t, uint64_t)>& factor) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Matrix a, b;
  a.tokens = b.tokens = kTokens;
  a.features = b.features = kFeatures;
  for (uint64_t i = 0; i < kTokens * kFeatures; ++i) {
    a.values.push_back(normal(random));
    b.values.push_back(
        as_stored(a.values.back() * factor(i / kFeatures, i % kFeatures), DType::bf16));
  }
  return shared_shrink(a, b, std::ldexp(1, -8));
}

TEST(SharedShrink, SeesWhatTheNoiseOfElementsHides) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const auto found =
        shrink(seed, [](uint64_t row, uint64_t) { return 1 - 0.0015 - 1e-4 * double(row % 5); });
    ASSERT_TRUE(found) << seed;
    EXPECT_NEAR(*found, -0.0017, 4e-4) << seed;
  }
}

TEST(SharedShrink, IsNotInNoise) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    EXPECT_FALSE(shrink(seed, [](uint64_t, uint64_t) { return 1; })) << seed;
    // Nor in a weight that was rounded, each feature its own way,
    std::mt19937 random(seed);
    std::vector<double> weight(kFeatures);
    for (double& value : weight) value = 1 + (double(random() % 2000) / 1000 - 1) * 0.004;
    EXPECT_FALSE(shrink(seed, [&](uint64_t, uint64_t i) { return weight[i]; })) << seed;
    // nor in factors of tokens that go either way.
    EXPECT_FALSE(shrink(seed, [&](uint64_t row, uint64_t) { return weight[row]; })) << seed;
  }
}

}  // namespace
}  // namespace tensordiff
