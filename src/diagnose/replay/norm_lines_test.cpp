#include "diagnose/replay/norm_lines.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "diagnose/sample/fit.h"

namespace tensordiff {
namespace {

struct Normed {
  Matrix x, out;
};

// LayerNorm (centred, with a bias) or RMSNorm of random tokens of different sizes.
Normed random_norm(bool centred, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Normed made;
  made.x.tokens = 12, made.x.features = 20;
  for (uint64_t i = 0; i < 12 * 20; ++i)
    made.x.values.push_back((1 + static_cast<double>(i / 20)) * (normal(random) + 0.5));
  std::vector<double> weight, bias;
  for (int i = 0; i < 20; ++i) weight.push_back(normal(random)), bias.push_back(normal(random));
  made.out = made.x;
  for (uint64_t row = 0; row < 12; ++row) {
    const auto token = made.out.row(row);
    double mean = 0, square = 0;
    for (const double value : token) mean += value / 20;
    for (double& value : token) value -= centred ? mean : 0;
    for (const double value : token) square += value * value / 20;
    for (uint64_t i = 0; i < 20; ++i)
      token[i] = token[i] / std::sqrt(square) * weight[i] + (centred ? bias[i] : 0);
  }
  return made;
}

TEST(NormLines, MakeBothKindsOfNorm) {
  for (const bool centred : {false, true}) {
    const Normed made = random_norm(centred, 4);
    for (const bool tried : {false, true}) {
      const Matrix unit = unit_tokens(made.x, tried);
      const Matrix again = on_lines(unit, lines_between(unit, made.out, tried));
      const double left = distance(again.values, made.out.values) / norm(made.out.values);
      if (tried == centred)
        EXPECT_LT(left, 1e-12);
      else
        EXPECT_GT(left, 0.01);
    }
  }
}

TEST(NormLines, LeastSquaresNeedNoSecondVector) {
  LeastSquares sums;
  for (const double x : {1.0, 2.0, 3.0}) sums.add(x, 0, 2 * x);
  sums.add(NAN, 0, 1);
  double p = 0, q = 1;
  sums.solve(p, q);
  EXPECT_DOUBLE_EQ(p, 2);
  EXPECT_EQ(q, 0);
}

}  // namespace
}  // namespace tensordiff
