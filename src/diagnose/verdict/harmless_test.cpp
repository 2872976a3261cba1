// Differences that are far beyond rounding and no mistake.

#include "diagnose/verdict/harmless.h"

#include <gtest/gtest.h>

#include <cmath>

#include "diagnose/toys/toy_steps.h"

namespace tensordiff {
namespace {

TEST(Harmless, ANormFoldedIntoAConvolution) {
  const Values in = random_values(16 * 24, 1), conv = random_values(16 * 24, 2);
  const Values other = random_values(16 * 24, 3), out = random_values(16 * 24, 4);
  Values norm = conv;  // A factor and an offset for each channel.
  for (std::size_t i = 0; i < norm.size(); ++i)
    norm[i] = norm[i] * (0.5 + 0.1 * double(i % 24)) - 0.2 * double(i % 24);
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
  // What equals the next step by chance: nothing of A's norm is made of its convolution.
  norm = other;
  EXPECT_EQ(alarms(steps(norm, norm)), "layer1.0.conv1 ");
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

// A gate whose inputs are large: few elements are not saturated, and show what came in.
TEST(Harmless, AGateShowsWhatCameInWhereItIsNotSaturated) {
  const auto gate = [](Values values) {
    for (double& value : values) value = 1 / (1 + std::exp(-value));
    return values;
  };
  Values in = random_values(16 * 24, 1), rounded = in;
  for (std::size_t i = 0; i < in.size(); ++i) {
    in[i] *= i % 97 == 5 ? 0.1 : 1e4;
    rounded[i] = in[i] + 1e-2 * (i % 2 == 0 ? 1 : -1);
  }
  Values other = gate(rounded);
  EXPECT_EQ(alarms({{"layer1.0.conv", in, rounded}, {"layer1.0.gate", gate(in), other}}), "");
  other[5] += 0.02;  // More than the slope of any gate makes of what came in.
  EXPECT_EQ(alarms({{"layer1.0.conv", in, rounded}, {"layer1.0.gate", gate(in), other}}),
            "layer1.0.gate ");
}

// Tokens that are next to nothing in A, and underflow in B.
TEST(Harmless, AnEmptyTokenIsNoneWhereAHasNextToNothing) {
  const Values in = random_values(16 * 24, 1), out = random_values(16 * 24, 2);
  const Values last = random_values(16 * 24, 3);
  const auto told = [&](double size) {
    Values a = out, b = out;
    for (std::size_t i = 3 * 24; i < 4 * 24; ++i) a[i] = size * out[i], b[i] = 0;
    return alarms({{"layer1.0.act", in, in}, {"layer1.0.conv", a, b}, {"layer1.0", last, last}});
  };
  EXPECT_EQ(told(1e-30), "");
  EXPECT_EQ(told(1), "layer1.0.conv ");
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
