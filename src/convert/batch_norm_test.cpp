// Batch norms folded into the weights before them.

#include <gtest/gtest.h>

#include <cmath>

#include "convert/test_merges.h"

namespace tensordiff {
namespace {

struct Convolutions {
  std::vector<Tensor> a, b;
  std::vector<View> weights;

  explicit Convolutions(int count) {
    for (int i = 0; i < count; ++i) {
      const auto seed = static_cast<unsigned>(100 + 10 * i);
      weights.push_back(noise_view({8, 6, 3, 3}, seed));
      const View gamma = positive(noise_view({8}, seed + 1)), beta = noise_view({8}, seed + 2);
      const View mean = noise_view({8}, seed + 3), variance = positive(noise_view({8}, seed + 4));
      const std::string number = std::to_string(i + 1), norm = "layer.bn" + number;
      a.push_back(tensor("layer.conv" + number + ".weight", weights.back()));
      a.push_back(tensor(norm + ".weight", gamma));
      a.push_back(tensor(norm + ".bias", beta));
      a.push_back(tensor(norm + ".running_mean", mean));
      a.push_back(tensor(norm + ".running_var", variance));
      std::vector<float> weight = values_of(weights.back()), bias = values_of(beta);
      for (std::size_t k = 0; k < weight.size(); ++k) weight[k] *= factor(gamma, variance, k / 54);
      for (std::size_t k = 0; k < 8; ++k)
        bias[k] -= values_of(mean)[k] * factor(gamma, variance, k);
      b.push_back(tensor("layer.conv" + number + ".weight", f32_view({8, 6, 3, 3}, weight)));
      b.push_back(tensor("layer.conv" + number + ".bias", f32_view({8}, bias)));
    }
  }

  static float factor(const View& gamma, const View& variance, std::size_t channel) {
    return values_of(gamma)[channel] / std::sqrt(values_of(variance)[channel] + 1e-3F);
  }
};

TEST(Merge, FoldsABatchNormIntoTheWeightsAndTheBias) {
  const Convolutions model(3);
  const Inferred found = infer(catalog_of(model.a), catalog_of(model.b));
  EXPECT_EQ(found.rules(), (std::vector<std::string>{"batch norm of A folded in: 3",
                                                     "batch norm of A folded in: 3"}));
  EXPECT_TRUE(found.conversion.exceptions.empty());
  EXPECT_EQ(found.matching.pairs.size(), 6U);
  EXPECT_TRUE(found.matching.only_b.empty());
}

TEST(Merge, TellsAConvolutionThatWasNotFolded) {
  Convolutions model(3);
  model.b[2].view = model.weights[1];
  const Inferred found = infer(catalog_of(model.a), catalog_of(model.b));
  ASSERT_EQ(found.conversion.exceptions.size(), 1U);
  EXPECT_EQ(text_of(found.conversion.exceptions[0].rule), "batch norm of A folded in");
  EXPECT_EQ(text_of(found.conversion.exceptions[0].fits), "as it is");
}

}  // namespace
}  // namespace tensordiff
