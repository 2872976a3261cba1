// Products in TF32 or bf16 inside an f32 run.

#include "diagnose/noise/coarse_products.h"

#include <gtest/gtest.h>

#include <cmath>

#include "diagnose/toy_steps.h"

namespace tensordiff {
namespace {

constexpr uint64_t kTokens = 16, kWidth = 24;

// To so many bits of fraction.
double rounded(double value, int bits) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, bits + 1)), exponent - bits - 1);
}

Values product(const Values& x, const Values& weight, int bits) {
  Values out(kTokens * kWidth);
  for (uint64_t t = 0; t < kTokens; ++t)
    for (uint64_t i = 0; i < kWidth; ++i)
      for (uint64_t k = 0; k < kWidth; ++k)
        out[t * kWidth + i] +=
            rounded(x[t * kWidth + k], bits) * rounded(weight[i * kWidth + k], bits) / 5;
  return out;
}

// Two layers of a query, a key and a value that read what comes before. `bits` of each product.
std::vector<Held> layers(const std::vector<int>& bits) {
  std::vector<Held> held;
  Values a = random_values(kTokens * kWidth, 1), b = a;
  held.push_back({"model.embed_tokens", a, b});
  unsigned seed = 2;
  for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
    Values next_a = a, next_b = b;
    for (const std::string name : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}) {
      const Values weight = random_values(kWidth * kWidth, seed);
      const int of_this = bits[std::min<std::size_t>(seed - 2, bits.size() - 1)];
      held.push_back({layer + name, product(a, weight, 23), product(b, weight, of_this)});
      for (std::size_t i = 0; i < a.size(); ++i) {
        next_a[i] += held.back().a[i];
        next_b[i] += held.back().b[i];
      }
      ++seed;
    }
    a = next_a, b = next_b;
    held.push_back({layer.substr(0, layer.size() - 1), a, b});
  }
  return held;
}

std::string told_of(const std::vector<int>& bits) {
  for (const Finding& finding : diagnose(sites_of(layers(bits)), {}).findings)
    if (finding.code == "precision_noise") return finding.explanation;
  return "";
}

TEST(CoarseProducts, AreToldOnceAndAreNoMistake) {
  EXPECT_EQ(alarms(layers({10})), "");
  EXPECT_EQ(alarms(layers({7})), "");
  EXPECT_TRUE(told_of({10}).starts_with("B's products (matmuls, convolutions) round like TF32"))
      << told_of({10});
  EXPECT_TRUE(told_of({7}).starts_with("B's products (matmuls, convolutions) round like bf16"));
  EXPECT_EQ(told_of({23}).find("round like"), std::string::npos);
}

TEST(CoarseProducts, AreAMistakeInOneStepAlone) {
  EXPECT_TRUE(alarms(layers({10, 23})).starts_with("model.layers.0.self_attn.q_proj"))
      << alarms(layers({10, 23}));
  EXPECT_TRUE(alarms(layers({23, 23, 23, 7, 23})).starts_with("model.layers.1.self_attn.q_proj"));
}

TEST(CoarseProducts, HideNoMistakeBehindThem) {
  std::vector<Held> held = layers({10});
  for (double& value : held[5].b) value *= 0.5;
  EXPECT_TRUE(alarms(held).starts_with("model.layers.1.self_attn.q_proj"));
}

}  // namespace
}  // namespace tensordiff
