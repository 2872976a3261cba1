// W + s·B·A as one weight.

#include <gtest/gtest.h>

#include "convert/merge.h"
#include "convert/test_merges.h"

namespace tensordiff {
namespace {

// B[i, j] = A[i, j] + scale · Σ up[i, k] · down[k, j]
View updated(const View& base, const View& down, const View& up, double scale) {
  std::vector<float> values = values_of(base);
  const std::vector<float> x = values_of(down), y = values_of(up);
  const std::size_t columns = base.shape[1], rank = down.shape[0];
  for (std::size_t i = 0; i < values.size(); ++i)
    for (std::size_t k = 0; k < rank; ++k)
      values[i] +=
          static_cast<float>(scale) * y[i / columns * rank + k] * x[k * columns + i % columns];
  return f32_view(base.shape, values);
}

struct Adapted {
  std::vector<Tensor> a, b;
  std::vector<View> bases, downs, ups;

  explicit Adapted(int layers) {
    for (int i = 0; i < layers; ++i) {
      const auto seed = static_cast<unsigned>(10 * i);
      bases.push_back(noise_view({24, 16}, seed + 1));
      downs.push_back(noise_view({2, 16}, seed + 2));
      ups.push_back(noise_view({24, 2}, seed + 3));
      const std::string path = "model.layers." + std::to_string(i) + ".self_attn.q_proj";
      a.push_back(tensor("base_model.model." + path + ".base_layer.weight", bases.back()));
      a.push_back(tensor("base_model.model." + path + ".lora_A.default.weight", downs.back()));
      a.push_back(tensor("base_model.model." + path + ".lora_B.default.weight", ups.back()));
      b.push_back(tensor(path + ".weight", updated(bases.back(), downs.back(), ups.back(), 2)));
    }
  }
};

TEST(Merge, OfALoraUpdateFindsTheScaleByItself) {
  const Adapted model(3);
  const Inferred found = infer(catalog_of(model.a), catalog_of(model.b));
  EXPECT_EQ(found.rules(), std::vector<std::string>{"LoRA update of A merged (scale 2): 3"});
  EXPECT_TRUE(found.conversion.exceptions.empty());
}

TEST(Merge, TellsAWeightThatWasLeftOut) {
  Adapted model(3);
  model.b[1].view = model.bases[1];
  const Inferred found = infer(catalog_of(model.a), catalog_of(model.b));
  ASSERT_EQ(found.conversion.exceptions.size(), 1U);
  EXPECT_EQ(text_of(found.conversion.exceptions[0].fits), "as it is");
}

// Conv1D of GPT-2 keeps its weights as [in, out]. The shape of a square one does not tell; most of
// its kind do, and one that was merged the other way round is an exception.
TEST(Merge, OfSquareWeightsFollowsTheirKind) {
  std::vector<Tensor> a, b;
  for (unsigned i = 0; i < 3; ++i) {
    const View base = noise_view({16, 16}, 10 * i + 1), down = noise_view({2, 16}, 10 * i + 2);
    const View up = noise_view({16, 2}, 10 * i + 3);
    const std::string path = "h." + std::to_string(i) + ".attn.c_proj";
    a.push_back(tensor(path + ".weight", base));
    a.push_back(tensor(path + ".lora_A.weight", down));
    a.push_back(tensor(path + ".lora_B.weight", up));
    std::vector<float> values = values_of(base);
    const std::vector<float> x = values_of(down), y = values_of(up);
    for (std::size_t row = 0; row < 16; ++row)
      for (std::size_t column = 0; column < 16; ++column) {
        const std::size_t in = i == 2 ? column : row, out = i == 2 ? row : column;
        for (std::size_t k = 0; k < 2; ++k)
          values[row * 16 + column] += 2 * y[out * 2 + k] * x[k * 16 + in];
      }
    b.push_back(tensor(path + ".weight", f32_view({16, 16}, values)));
  }
  const auto changed = [](const Inferred& found) { return found.conversion.exceptions.size(); };
  EXPECT_EQ(changed(infer(catalog_of({a.begin(), a.begin() + 6}), catalog_of({b[0], b[1]}))), 0U);
  const Inferred found = infer(catalog_of(a), catalog_of(b));
  EXPECT_EQ(found.rules(), std::vector<std::string>{"LoRA update of A merged (scale 2): 2"});
}

TEST(Merge, TellsAnotherScale) {
  Adapted model(3);
  model.b[2].view = updated(model.bases[2], model.downs[2], model.ups[2], 1);
  const Inferred found = infer(catalog_of(model.a), catalog_of(model.b));
  ASSERT_EQ(found.conversion.exceptions.size(), 1U);
  EXPECT_EQ(text_of(found.conversion.exceptions[0].fits), "LoRA update of A merged (scale 1)");
}

TEST(Merge, IsNoneWhereTheOtherSideHasTheWeightsAlone) {
  Adapted model(3);
  for (std::size_t i = 0; i < 3; ++i) model.b[i].view = model.bases[i];
  const Inferred found = infer(catalog_of(model.a), catalog_of(model.b));
  EXPECT_TRUE(found.rules().empty());
  EXPECT_TRUE(found.conversion.exceptions.empty());
}

}  // namespace
}  // namespace tensordiff
