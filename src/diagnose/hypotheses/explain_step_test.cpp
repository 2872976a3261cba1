#include "diagnose/hypotheses/explain_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "diagnose/toy_values.h"

namespace tensordiff {
namespace {

constexpr uint64_t kTokens = 12, kWidth = 16;
constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};

// A run of few steps, each with what both sides hold; the last one is explained.
struct Steps {
  tensordiff::Run run;
  DType dtype;

  explicit Steps(DType type) : dtype(type) {}

  void add(const std::string& name, const Shape& shape, const Values& a, const Values& b) {
    Site site;
    site.index = site.capture = run.sites.size();
    site.a.name = site.b.name = name;
    site.views.a = view_of(shape, a, dtype);
    site.views.b = view_of(shape, b, dtype);
    site.comparison = compare(site.views).value();
    site.roundoff = dtype == DType::f32 ? 0x1p-24 : (dtype == DType::f16 ? 0x1p-11 : 0x1p-8);
    run.sites.push_back(std::move(site));
  }

  void give(const std::vector<std::pair<std::string, View>>& parameters) {
    Catalog catalog;
    for (const auto& [name, view] : parameters) {
      Tensor tensor;
      tensor.name = name;
      tensor.view = view;
      catalog.tensors.push_back(std::move(tensor));
    }
    run.weights = Weights(catalog);
  }

  Told explained() const {
    Told told;
    explain_step(run, {}, run.sites.back(), told);
    return told;
  }
  std::string code() const {
    const Told told = explained();
    return told.finding ? told.finding->code : "";
  }
};

// What was stored is what the next step reads.
Values stored(Values values, DType dtype) {
  for (double& value : values) value = as_stored(value, dtype);
  return values;
}

Values multiplied(const Values& x, const Values& w, const Values& bias) {
  Values y;
  for (uint64_t t = 0; t < x.size() / kWidth; ++t)
    for (uint64_t o = 0; o < kWidth; ++o) {
      double sum = bias.empty() ? 0 : bias[o];
      for (uint64_t i = 0; i < kWidth; ++i) sum += x[t * kWidth + i] * w[o * kWidth + i];
      y.push_back(sum);
    }
  return y;
}

Values normed(const Values& x, const Values& w, double epsilon, bool centred = false) {
  Values y = x;
  for (uint64_t t = 0; t < x.size() / kWidth; ++t) {
    double mean = 0, squares = 0;
    for (uint64_t i = 0; i < kWidth && centred; ++i) mean += x[t * kWidth + i] / kWidth;
    for (uint64_t i = 0; i < kWidth; ++i) squares += std::pow(x[t * kWidth + i] - mean, 2) / kWidth;
    for (uint64_t i = 0; i < kWidth; ++i)
      y[t * kWidth + i] = (x[t * kWidth + i] - mean) / std::sqrt(squares + epsilon) * w[i];
  }
  return y;
}

const Shape kShape = {1, kTokens, kWidth};

class OfAllTypes : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Types, OfAllTypes, testing::ValuesIn(kTypes));

TEST_P(OfAllTypes, AProjectionWithoutItsBiasIsAnOffset) {
  Steps steps(GetParam());
  const Values x = stored(random_values(kTokens * kWidth, 1), GetParam());
  const Values w = stored(random_values(kWidth * kWidth, 2), DType::f32);
  const Values bias = random_values(kWidth, 3);
  steps.add("norm", kShape, x, x);
  steps.add("proj", kShape, multiplied(x, w, bias), multiplied(x, w, {}));
  steps.give({{"proj.weight", view_of({kWidth, kWidth}, w, DType::f32)},
              {"proj.bias", view_of({kWidth}, bias, DType::f32)}});
  EXPECT_EQ(steps.code(), "offset");
}

TEST_P(OfAllTypes, AProjectionByTheTransposedWeightIsToldBehindAnotherMistake) {
  Steps steps(GetParam());
  const Values x = stored(random_values(kTokens * kWidth, 1), GetParam());
  const Values other = stored(random_values(kTokens * kWidth, 9), GetParam());
  const Values w = random_values(kWidth * kWidth, 2);
  Values turned(w.size());
  for (uint64_t i = 0; i < w.size(); ++i) turned[i % kWidth * kWidth + i / kWidth] = w[i];
  steps.add("norm", kShape, x, other);
  steps.add("proj", kShape, multiplied(x, w, {}), multiplied(other, turned, {}));
  steps.give({{"model.proj.weight", view_of({kWidth, kWidth}, w, DType::f32)}});
  const Told told = steps.explained();
  ASSERT_TRUE(told.finding);
  EXPECT_EQ(told.finding->explanation, "B multiplies by the transposed weight");
}

TEST_P(OfAllTypes, AProjectionThatIsRightIsNotBlamedForWhatItReads) {
  Steps steps(GetParam());
  const Values x = stored(random_values(kTokens * kWidth, 1), GetParam());
  const Values other = stored(random_values(kTokens * kWidth, 9), GetParam());
  const Values w = random_values(kWidth * kWidth, 2);
  steps.add("norm", kShape, x, other);
  steps.add("proj", kShape, multiplied(x, w, {}), multiplied(other, w, {}));
  steps.give({{"proj.weight", view_of({kWidth, kWidth}, w, DType::f32)}});
  EXPECT_EQ(steps.code(), "");
}

TEST_P(OfAllTypes, AnotherEpsilonIsToldWithAndWithoutWeights) {
  for (const bool given : {true, false}) {
    Steps steps(GetParam());
    Values x = random_values(kTokens * kWidth, 4);
    for (uint64_t i = 0; i < x.size(); ++i) x[i] *= 0.02 * static_cast<double>(1 + i / kWidth);
    x = stored(x, GetParam());
    Values w = random_values(kWidth, 5, 0.1);
    for (double& value : w) value += 1;
    steps.add("stream", kShape, x, x);
    steps.add("norm", kShape, normed(x, w, 1e-6), normed(x, w, 1e-3));
    if (given) steps.give({{"norm.weight", view_of({kWidth}, w, DType::f32)}});
    EXPECT_EQ(steps.code(), "norm_epsilon") << (given ? "given" : "fitted");
  }
}

TEST_P(OfAllTypes, ANormThatLosesATermOfItsSumLacksTheResidual) {
  Steps steps(GetParam());
  const Values x = stored(random_values(kTokens * kWidth, 6), GetParam());
  const Values z = stored(random_values(kTokens * kWidth, 7), GetParam());
  Values both = x;
  for (uint64_t i = 0; i < x.size(); ++i) both[i] += z[i];
  const Values w(kWidth, 1.5);
  steps.add("layer", kShape, x, x);
  steps.add("attn", kShape, z, z);
  steps.add("norm", kShape, normed(both, w, 1e-5), normed(z, w, 1e-5));
  const Told told = steps.explained();
  ASSERT_TRUE(told.finding);
  // A norm does not tell a sum that lacks a term from one that has the other term twice.
  EXPECT_EQ(told.finding->code, "residual_missing");
  EXPECT_NE(told.finding->explanation.find("'layer'"), std::string::npos);
}

TEST(ExplainStep, AnotherActivationIsNamed) {
  Steps steps(DType::f32);
  const Values x = random_values(kTokens * kWidth, 8, 2);
  Values a = stored(x, DType::f32), b = a;
  for (double& value : a) value = value / (1 + std::exp(-value));
  for (double& value : b) value = 0.5 * value * std::erfc(-value / std::sqrt(2.0));
  steps.add("up", kShape, x, x);
  steps.add("act", kShape, a, b);
  const Told told = steps.explained();
  ASSERT_TRUE(told.finding);
  EXPECT_EQ(told.finding->explanation, "B applies GELU (erf) where A applies SiLU");
}

TEST(ExplainStep, NothingIsSaidOfAStepThatNoOperatorIs) {
  Steps steps(DType::f32);
  const Values x = random_values(kTokens * kWidth, 1);
  steps.add("in", kShape, x, x);
  steps.add("out", kShape, random_values(x.size(), 2), random_values(x.size(), 3));
  EXPECT_EQ(steps.code(), "");
}

}  // namespace
}  // namespace tensordiff
