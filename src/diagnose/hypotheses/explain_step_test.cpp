#include "diagnose/hypotheses/explain_step.h"
#include "diagnose/hypotheses/output.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "diagnose/toys/toy_values.h"

namespace tensordiff {
namespace {

constexpr uint64_t kTokens = 12, kWidth = 16;
constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};

// A run of few steps, each with what both sides hold; the last one is explained.
struct Steps {
  tensordiff::Run run;
  DType dtype;
  LoneTensors lone = {};

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
    explain_step(run, {}, lone, run.sites.back(), told);
    return told;
  }
  // Of a step that nothing is known of.
  Told of_output() const {
    Told told;
    explain_output(run, {}, lone, run.sites.back(), told);
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

// What is shown beside B is what the finding makes of it, also where the features are channels.
TEST(ExplainStep, TheValuesOfAFindingAreThoseOfItsChange) {
  constexpr uint64_t kChannels = 6, kPlaces = 20;
  const Values x = random_values(2 * kChannels * kPlaces, 1), w = random_values(kChannels * 3, 2);
  const Values bias = random_values(kChannels, 3);
  Values a(x.size()), b(x.size());
  for (uint64_t i = 0; i < x.size(); ++i) {
    const uint64_t channel = i / kPlaces % kChannels, place = i % kPlaces;
    for (uint64_t k = 0; k < 3; ++k)
      if (place + k >= 1 && place + k <= kPlaces) b[i] += w[channel * 3 + k] * x[i + k - 1];
    a[i] = b[i] + bias[channel];
  }
  Steps steps(DType::f32);
  steps.add("norm", {2, kChannels, kPlaces}, x, x);
  steps.add("conv", {2, kChannels, kPlaces}, a, b);
  steps.give({{"conv.weight", view_of({kChannels, 1, 3}, w, DType::f32)},
              {"conv.bias", view_of({kChannels}, bias, DType::f32)}});
  const Told told = steps.explained();
  ASSERT_TRUE(told.finding && told.finding->evidence);
  EXPECT_EQ(told.finding->code, "offset");
  const EvidenceSlice& shown = *told.finding->evidence;
  ASSERT_EQ(shown.model.size(), shown.b.size());
  for (std::size_t i = 0; i < shown.b.size(); ++i) {
    EXPECT_NEAR(shown.model[i], shown.b[i], 1e-5);
    EXPECT_NEAR(shown.a[i] - shown.b[i], bias[shown.at[1]], 1e-5);
  }
}

// A batch norm that sees all tokens as one list, behind a projection that has a batch.
TEST(ExplainStep, RowsAreTheSameHoweverTheyAreSplit) {
  const Values x = random_values(kTokens * kWidth, 1), w = random_values(kWidth, 2);
  Values a = x, b = x;
  for (uint64_t i = 0; i < x.size(); ++i) a[i] = 0.3 + x[i] * w[i % kWidth];
  for (double& value : b) value += 0.3;
  Steps steps(DType::f32);
  steps.add("linear", {2, kTokens / 2, kWidth}, x, x);
  steps.add("batch_norm", {kTokens, kWidth}, a, b);
  EXPECT_EQ(steps.code(), "norm_weight");
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
    for (uint64_t i = 0; i < x.size(); ++i) {
      const uint64_t tokens = 1 + i / kWidth;
      x[i] *= 0.02 * static_cast<double>(tokens);
    }
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

// "cause" of a finding; empty where there is none.
std::string cause_of(const Told& told) {
  if (!told.finding) return "";
  for (const Parameter& each : told.finding->parameters)
    if (each.name == "cause") return std::get<std::string>(each.value);
  return "";
}

TEST(ExplainStep, ATermThatOnlyAHasIsMissingInB) {
  Steps steps(DType::f32);
  const Values x = stored(random_values(kTokens * kWidth, 6), DType::f32);
  const Values z = stored(random_values(kTokens * kWidth, 7), DType::f32);
  Values both = x;
  for (uint64_t i = 0; i < x.size(); ++i) both[i] += z[i];
  const Values w(kWidth, 1.5);
  steps.add("words", kShape, x, x);
  steps.add("norm", kShape, normed(both, w, 1e-5), normed(x, w, 1e-5));
  steps.run.sites[1].capture = 2;
  steps.lone.a = {{"types", 1, view_of(kShape, z, DType::f32)}};
  const Told told = steps.explained();
  ASSERT_TRUE(told.finding);
  EXPECT_EQ(told.finding->code, "residual_missing");
  EXPECT_EQ(told.finding->explanation, "B does not add 'types', which B does not have");
}

TEST(ExplainStep, WhatBAloneHasIsToldOnlyWhereNothingElseIs) {
  Steps steps(DType::f32);
  const Values x = stored(random_values(kTokens * kWidth, 1), DType::f32);
  const Values other = stored(random_values(kTokens * kWidth, 9), DType::f32);
  const Values w = stored(random_values(kWidth * kWidth, 2), DType::f32);
  steps.add("norm", kShape, x, x);
  steps.add("proj", kShape, multiplied(x, w, {}), multiplied(other, w, {}));
  steps.run.sites[1].capture_b = 2;
  steps.give({{"proj.weight", view_of({kWidth, kWidth}, w, DType::f32)}});
  EXPECT_EQ(steps.code(), "");
  steps.lone.b = {{"pooled", 1, view_of(kShape, other, DType::f32)}};
  EXPECT_EQ(steps.code(), "other_tensor");
}

TEST(ExplainStep, ColumnsOfAWeightThatAreLostAreToldApart) {
  Steps steps(DType::f32);
  const Values x = stored(random_values(kTokens * kWidth, 1), DType::f32);
  const Values w = stored(random_values(kWidth * kWidth, 2), DType::f32);
  Values lost = w;
  for (uint64_t i = 0; i < w.size(); ++i)
    if (i % kWidth >= 3 && i % kWidth < 5) lost[i] = 0;
  steps.add("norm", kShape, x, x);
  steps.add("proj", kShape, multiplied(x, w, {}), multiplied(x, lost, {}));
  steps.give({{"proj.weight", view_of({kWidth, kWidth}, w, DType::f32)}});
  const Told told = steps.explained();
  EXPECT_EQ(cause_of(told), "columns_lost");
}

TEST(ExplainStep, RowsOfAWeightThatWereMovedAreToldThoughTheBiasStays) {
  Steps steps(DType::f32);
  const Values x = stored(random_values(kTokens * kWidth, 1), DType::f32);
  const Values w = stored(random_values(kWidth * kWidth, 2), DType::f32);
  const Values bias = stored(random_values(kWidth, 3), DType::f32);
  Values moved(w.size());
  for (uint64_t i = 0; i < w.size(); ++i) moved[(i + kWidth) % w.size()] = w[i];
  steps.add("norm", kShape, x, x);
  steps.add("proj", kShape, multiplied(x, w, bias), multiplied(x, moved, bias));
  steps.run.sites[1].budget = 64 * 0x1p-24;
  steps.give({{"proj.weight", view_of({kWidth, kWidth}, w, DType::f32)},
              {"proj.bias", view_of({kWidth}, bias, DType::f32)}});
  EXPECT_EQ(cause_of(steps.explained()), "rows_moved");
}

// What any step gives, changed in a way that needs no knowledge of it.
Told with_output(const std::function<double(const Values& a, uint64_t at)>& made) {
  Steps steps(DType::f32);
  const Values a = stored(random_values(kTokens * kWidth, 5), DType::f32);
  Values b;
  for (uint64_t i = 0; i < a.size(); ++i) b.push_back(made(a, i));
  steps.add("step", kShape, a, b);
  steps.run.sites[0].budget = 64 * 0x1p-24;
  return steps.of_output();
}

TEST(ExplainOutput, FeaturesInAnotherOrderAreFound) {
  const Told told = with_output([](const Values& a, uint64_t at) {
    const uint64_t column = at % kWidth;
    return a[at - column + (column < 6 ? (column + 3) % 6 : column)];
  });
  EXPECT_EQ(cause_of(told), "feature_order");
}

TEST(ExplainOutput, ShiftedTokensAreToldThoughSomeAreAlike) {
  Steps steps(DType::f32);
  Values a = stored(random_values(kTokens * kWidth, 5), DType::f32);
  std::copy_n(a.begin() + 2 * kWidth, kWidth, a.begin() + 7 * kWidth);
  Values b = a;
  std::ranges::rotate(b, b.end() - kWidth);
  steps.add("step", kShape, a, b);
  steps.run.sites[0].budget = 64 * 0x1p-24;
  const Told told = steps.of_output();
  ASSERT_TRUE(told.finding);
  EXPECT_EQ(told.finding->code, "token_shift");
  EXPECT_EQ(told.finding->explanation,
            "token t of B is token t − 1 of A, and the ends wrap around");
}

TEST(ExplainOutput, OneRowForAllIsFound) {
  const Told told =
      with_output([](const Values& a, uint64_t at) { return a[kWidth + at % kWidth]; });
  EXPECT_EQ(cause_of(told), "one_row");
}

TEST(ExplainOutput, DropoutIsToldFromARowThatIsEmpty) {
  std::mt19937 random(4);
  EXPECT_EQ(cause_of(with_output([&](const Values& a, uint64_t at) {
              return random() % 10 < 2 ? 0 : static_cast<float>(a[at] / 0.8);
            })),
            "dropout");
  EXPECT_EQ(
      cause_of(with_output([](const Values& a, uint64_t at) { return at < kWidth ? 0 : a[at]; })),
      "");
  // Nor where all others are rounded otherwise.
  EXPECT_EQ(cause_of(with_output([](const Values& a, uint64_t at) {
              return at < kWidth ? 0 : static_cast<float>(a[at] * (1 + 1e-4));
            })),
            "");
}

TEST(ExplainOutput, AnActivationThatCutsOffOneSignIsNoDropout) {
  EXPECT_NE(cause_of(with_output([](const Values& a, uint64_t at) {
              return a[at] < 0 ? 0 : static_cast<float>(a[at] * 2);
            })),
            "dropout");
}

TEST(ExplainOutput, AStepThatIsComputedInFewerBitsIsACast) {
  const Told told = with_output(
      [](const Values& a, uint64_t at) { return as_stored(a[at] * (1 + 0x1p-10), DType::bf16); });
  EXPECT_EQ(cause_of(told), "computed_in");
}

TEST(ExplainOutput, NothingIsSaidOfValuesThatHaveNothingToDoWithEachOther) {
  const Values other = random_values(kTokens * kWidth, 77);
  EXPECT_EQ(cause_of(with_output([&](const Values&, uint64_t at) { return other[at]; })), "");
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

// What was normalised is not in the dumps; without its weight, A's own output is normalised.
TEST(ExplainStep, ANormOfUnknownInputLacksItsWeightAndNotItself) {
  Steps steps(DType::f32);
  const Values x = random_values(kTokens * kWidth, 8), ones(kWidth, 1);
  const Values w = stored(random_values(kWidth, 9), DType::f32);
  steps.add("norm", kShape, normed(x, w, 0), normed(x, ones, 0));
  steps.give({{"norm.weight", view_of({kWidth}, w, DType::f32)}});
  EXPECT_EQ(steps.code(), "norm_weight");
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
