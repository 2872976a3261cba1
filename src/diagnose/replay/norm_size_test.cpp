#include "diagnose/replay/norm_size.h"

#include <gtest/gtest.h>

#include "diagnose/toys/toy_mistakes.h"

namespace tensordiff {
namespace {

constexpr uint64_t kTokens = 24, kWidth = 96;

// How b computes a norm of its own inputs, which are unrelated to a's.
struct Norm {
  bool centred = false;
  double epsilon = 1e-5;
  double factor = 1;
  double weight = 1, plus = 0;  // Times the weight, plus this.
};

struct Stored {
  Values weight, bias;
};

Values output_of(const Norm& norm, const Stored& stored, std::mt19937& random) {
  std::normal_distribution<double> normal;
  Values out;
  for (uint64_t row = 0; row < kTokens; ++row) {
    Values x;
    for (uint64_t i = 0; i < kWidth; ++i) x.push_back(normal(random) * (1 + 0.1 * double(row)));
    double mean = 0, square = 0;
    for (const double value : x) mean += norm.centred ? value / double(kWidth) : 0;
    for (const double value : x) square += (value - mean) * (value - mean) / double(kWidth);
    for (uint64_t i = 0; i < kWidth; ++i)
      out.push_back(norm.factor * ((x[i] - mean) / std::sqrt(square + norm.epsilon) *
                                       (norm.weight * stored.weight[i] + norm.plus) +
                                   stored.bias[i]));
  }
  return out;
}

// The code of what is found in b; nothing where nothing is.
std::string found_in(const Norm& b, DType dtype, bool with_weights = true) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  Stored stored;
  for (uint64_t i = 0; i < kWidth; ++i) {
    stored.weight.push_back(as_stored(0.6 + 0.2 * normal(random), dtype));
    stored.bias.push_back(b.centred ? as_stored(0.2 * normal(random), dtype) : 0);
  }
  Norm right;
  right.centred = b.centred;
  const Shape shape = {kTokens, kWidth};
  const std::vector<ToyModel::Dump> of_a = {
      {"post_ln_pre_attn", 0, shape, output_of(right, stored, random)}};
  const std::vector<ToyModel::Dump> of_b = {
      {"post_ln_pre_attn", 0, shape, output_of(b, stored, random)}};
  tensordiff::Run run = make_run(sites_of(of_a, dtype, of_b, dtype), {});
  run.sites[0].roundoff = dtype == DType::bf16  ? std::ldexp(1, -8)
                          : dtype == DType::f16 ? std::ldexp(1, -11)
                                                : std::ldexp(1, -24);
  Catalog catalog;
  const auto add = [&](std::string_view name, const Values& values) {
    catalog.tensors.push_back({fmt::format("model.layers.0.input_layernorm.{}", name),
                               view_of({kWidth}, values, dtype), ""});
  };
  add("weight", stored.weight);
  if (b.centred) add("bias", stored.bias);
  read_places(catalog);
  if (with_weights) run.weights = Weights(catalog);
  const Site& site = run.sites[0];
  const Case it(run, site, read_matrix(site.views.a, run.extent).value(),
                read_matrix(site.views.b, run.extent).value());
  const std::optional<NormMistake> found = wrong_size(it);
  return found ? std::string(found->diagnosis->code) : "";
}

constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};

TEST(NormSize, SaysNothingOfANormOfOtherInputs) {
  for (const DType dtype : kTypes)
    for (const bool centred : {false, true})
      EXPECT_EQ(found_in({.centred = centred}, dtype), "") << name_of(dtype) << centred;
}

TEST(NormSize, TellsAnotherEpsilon) {
  for (const DType dtype : kTypes)
    for (const bool centred : {false, true})
      for (const double epsilon : {0.02, 0.2})
        EXPECT_EQ(found_in({.centred = centred, .epsilon = epsilon}, dtype), "norm_epsilon")
            << name_of(dtype) << centred << epsilon;
  EXPECT_EQ(found_in({.epsilon = 1e-3}, DType::f32), "norm_epsilon");
}

// It may be that the stream of b is smaller.
TEST(NormSize, SaysNothingOfAnEpsilonThatIsNearlyTheSame) {
  EXPECT_EQ(found_in({.epsilon = 1e-4}, DType::f32), "");
}

TEST(NormSize, TellsAFactor) {
  for (const DType dtype : kTypes)
    for (const double factor : {0.5, 1.02, 8.0})
      EXPECT_EQ(found_in({.factor = factor}, dtype), "scale") << name_of(dtype) << factor;
}

TEST(NormSize, TellsAnotherWeight) {
  for (const DType dtype : kTypes)
    for (const bool centred : {false, true}) {
      EXPECT_EQ(found_in({.centred = centred, .weight = 0, .plus = 1}, dtype), "norm_weight");
      EXPECT_EQ(found_in({.centred = centred, .plus = 1}, dtype), "norm_weight");
    }
}

TEST(NormSize, SaysNothingWithoutWeights) {
  EXPECT_EQ(found_in({.epsilon = 0.1}, DType::f32, false), "");
}

}  // namespace
}  // namespace tensordiff
