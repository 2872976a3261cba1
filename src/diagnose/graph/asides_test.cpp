// Entries of B that hold another of its tensors, while what follows agrees.

#include "diagnose/graph/asides.h"

#include <gtest/gtest.h>

#include "diagnose/toys/toy_steps.h"

namespace tensordiff {
namespace {

Values sum(const Values& x, const Values& y) {
  Values result = x;
  for (std::size_t i = 0; i < x.size(); ++i) result[i] += y[i];
  return result;
}

// A norm without weights, so that it reads what comes before.
Values normed(Values x) {
  for (std::size_t row = 0; row < x.size(); row += 24) {
    double size = 0;
    for (std::size_t i = row; i < row + 24; ++i) size += x[i] * x[i] / 24;
    for (std::size_t i = row; i < row + 24; ++i) x[i] /= std::sqrt(size);
  }
  return x;
}

// A layer of A gives the stream, one of B what it adds to that.
std::vector<Held> steps(bool second_is_wrong) {
  const Values in = random_values(16 * 24, 1), mlp0 = random_values(16 * 24, 2);
  const Values one = sum(in, mlp0), mlp1 = random_values(16 * 24, 3), two = sum(one, mlp1);
  Values wrong = mlp1;
  for (double& value : wrong) value *= second_is_wrong ? 0.5 : 1;
  return {{"model.embed_tokens", in, in},
          {"model.layers.0.input_layernorm", normed(in), normed(in)},
          {"model.layers.0.mlp", mlp0, mlp0},
          {"model.layers.0", one, mlp0},
          {"model.layers.1.input_layernorm", normed(one), normed(one)},
          {"model.layers.1.mlp", mlp1, wrong},
          {"model.layers.1", two, wrong},
          {"model.norm", normed(two), normed(sum(one, wrong))}};
}

TEST(Asides, AreNoMistakes) { EXPECT_EQ(alarms(steps(false)), ""); }

TEST(Asides, HideNoMistake) {
  EXPECT_TRUE(alarms(steps(true)).starts_with("model.layers.1.mlp ")) << alarms(steps(true));
}

// Without the stream itself what follows differs, and the layer is wrong.
TEST(Asides, AreNoneWhereWhatFollowsDiffers) {
  std::vector<Held> held = steps(false);
  held[4].b = normed(held[3].b);
  held[7].b = normed(sum(held[3].b, held[5].b));
  EXPECT_TRUE(alarms(held).starts_with("model.layers.0 ")) << alarms(held);
}

// Gemma multiplies what it looks up: inside the module in A, behind it in B.
std::vector<Held> scaled(bool forgotten) {
  const Values in = random_values(16 * 24, 1), added = random_values(16 * 24, 2);
  Values small = in;
  for (double& value : small) value /= 5;
  const Values out = sum(in, added), of_b = sum(forgotten ? small : in, added);
  return {{"model.embed_tokens", in, small},
          {"model.layers.0.input_layernorm", normed(in), normed(in)},
          {"model.layers.0.mlp", added, added},
          {"model.layers.0", out, of_b},
          {"model.layers.1.input_layernorm", normed(out), normed(of_b)}};
}

TEST(Asides, AnEmbeddingIsScaledBehindItsModule) { EXPECT_EQ(alarms(scaled(false)), ""); }

TEST(Asides, AScaleThatIsForgottenIsAMistake) {
  EXPECT_TRUE(alarms(scaled(true)).starts_with("model.embed_tokens ")) << alarms(scaled(true));
}

// Gemma 2 caps its logits behind the head.
std::vector<Held> capped(double cap, double wrong) {
  const Values in = random_values(16 * 24, 1);
  Values logits = random_values(16 * 24, 2), behind = logits;
  for (double& value : logits) value *= 8;
  for (std::size_t i = 0; i < behind.size(); ++i)
    behind[i] = cap * std::tanh(logits[i] / cap) + (i == 5 ? wrong : 0);
  return {{"model.embed_tokens", in, in},
          {"model.layers.0.mlp", in, in},
          {"model.norm", normed(in), normed(in)},
          {"lm_head", logits, behind}};
}

TEST(Asides, LogitsMayBeCapped) {
  std::vector<Site> sites = sites_of(capped(30, 0));
  sites.back().b.name = "logits";
  EXPECT_FALSE(diagnose(sites, {}).first);
  std::vector<Site> same = sites_of(capped(30, 0));  // Both say that they stand before the cap.
  EXPECT_TRUE(diagnose(same, {}).first);
  std::vector<Site> other = sites_of(capped(30, 3));
  other.back().b.name = "logits";
  EXPECT_TRUE(diagnose(other, {}).first);
}

}  // namespace
}  // namespace tensordiff
