// Differences that are far beyond rounding and no mistake.

#include "diagnose/harmless.h"

#include <gtest/gtest.h>

#include "diagnose/toy_steps.h"

namespace tensordiff {
namespace {

TEST(Harmless, ANormFoldedIntoAConvolution) {
  const Values in = random_values(16 * 24, 1), conv = random_values(16 * 24, 2);
  const Values norm = random_values(16 * 24, 3), out = random_values(16 * 24, 4);
  const auto steps = [&](const Values& of_b, const Values& behind) {
    return std::vector<Held>{{"layer1.0.act", in, in},
                             {"layer1.0.conv1", conv, of_b},
                             {"layer1.0.bn1", norm, behind},
                             {"layer1.0", out, out}};
  };
  EXPECT_EQ(alarms(steps(norm, norm)), "");
  // Another convolution that the norm does not undo, and one that is no fold.
  EXPECT_EQ(alarms(steps(out, out)), "layer1.0.conv1 layer1.0.bn1 ");
  EXPECT_EQ(alarms(steps(out, norm)), "layer1.0.conv1 ");
}

TEST(Harmless, AFactorIsNoFold) {
  const Values in = random_values(16 * 24, 1), out = random_values(16 * 24, 2);
  Values scaled = out;
  for (auto& value : scaled) value /= 8;
  // The next tensor of A is the same, and B's is that times eight: nothing shows that it is made of
  // it.
  EXPECT_EQ(
      alarms({{"layers.0.act", in, in}, {"layers.0.attn", out, scaled}, {"layers.0", out, out}}),
      "layers.0.attn ");
}

TEST(Harmless, TheTokensOfAnExpertAreASet) {
  const Values in = random_values(16 * 24, 1), out = random_values(16 * 24, 2);
  Values turned = out;
  std::rotate(turned.begin(), turned.begin() + 5 * 24, turned.end());
  const auto steps = [&](const std::string& name) {
    return std::vector<Held>{{"model.layers.0.input_layernorm", in, in},
                             {name, out, turned},
                             {"model.layers.0", in, in}};
  };
  EXPECT_EQ(alarms(steps("model.layers.0.mlp.experts.1.up_proj")), "");
  EXPECT_EQ(alarms(steps("model.layers.0.mlp.up_proj")), "model.layers.0.mlp.up_proj ");
}

}  // namespace
}  // namespace tensordiff
