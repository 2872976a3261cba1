#include "diagnose/replay/epsilon_fit.h"

#include <gtest/gtest.h>

#include <cmath>

#include "diagnose/toys/toy_values.h"

namespace tensordiff {
namespace {

constexpr uint64_t kTokens = 32, kWidth = 48;

struct Norm {
  bool centred = true;
  double epsilon = 1e-5;
};

// What comes out of a norm with weights and biases of its own.
Values normed(const Values& x, const Norm& norm) {
  Values out;
  for (uint64_t row = 0; row < kTokens; ++row) {
    double mean = 0, square = 0;
    for (uint64_t i = 0; i < kWidth; ++i) mean += x[row * kWidth + i] / kWidth;
    if (!norm.centred) mean = 0;
    for (uint64_t i = 0; i < kWidth; ++i)
      square += std::pow(x[row * kWidth + i] - mean, 2) / kWidth;
    for (uint64_t i = 0; i < kWidth; ++i)
      out.push_back((x[row * kWidth + i] - mean) / std::sqrt(square + norm.epsilon) *
                        (1 + 0.3 * std::sin(double(i))) +
                    (norm.centred ? 0.1 * std::cos(double(i)) : 0));
  }
  return out;
}

// Tokens of many sizes, with a mean that is not 0.
Values stream() {
  Values x = random_values(kTokens * kWidth, 3);
  for (uint64_t i = 0; i < x.size(); ++i) {
    const uint64_t token = i / kWidth;
    x[i] = (x[i] + 0.5) * std::exp(0.15 * static_cast<double>(token) - 3);
  }
  return x;
}

Epsilons fitted(const Values& read, bool centred, double a, double b, DType dtype) {
  Run run;
  run.extent.tokens = kTokens;
  run.activations = true;
  run.sites.resize(2);
  const Shape shape = {kTokens, kWidth};
  const Values x = stream();
  run.sites[0].views = {view_of(shape, read, dtype), view_of(shape, read, dtype), {}, {}};
  run.sites[1].views = {view_of(shape, normed(x, {centred, a}), dtype),
                        view_of(shape, normed(x, {centred, b}), dtype),
                        {},
                        {}};
  for (Site& site : run.sites) {
    site.comparison = compare(site.views).value();
    site.roundoff = dtype == DType::bf16 ? std::ldexp(1.0, -9) : std::ldexp(1.0, -24);
  }
  run.sites[1].role = Role::attention_norm;
  run.sites[1].inputs = {0};
  const Case it(run, run.sites[1], read_matrix(run.sites[1].views.a, run.extent).value(),
                read_matrix(run.sites[1].views.b, run.extent).value());
  return fit_epsilons(it);
}

TEST(EpsilonFit, MeasuresBothSides) {
  for (const bool centred : {false, true}) {
    for (const auto& [a, b] : {std::pair(1e-5, 1e-2), {1e-2, 1e-5}, {1e-6, 1e-3}}) {
      const Epsilons found = fitted(stream(), centred, a, b, DType::f32);
      ASSERT_TRUE(found.a && found.b) << centred << a;
      EXPECT_NEAR(*found.a, a, 0.05 * a);
      EXPECT_NEAR(*found.b, b, 0.05 * b);
    }
  }
}

// Rounding to bf16 hides the smaller one: no number is better than a wrong one.
TEST(EpsilonFit, TellsNoNumberThatRoundingHides) {
  const Epsilons found = fitted(stream(), true, 1e-7, 1e-2, DType::bf16);
  EXPECT_FALSE(found.a) << *found.a;
  EXPECT_NEAR(found.b.value_or(1e-2), 1e-2, 2e-3);
}

TEST(EpsilonFit, TellsNothingOfANormOfSomethingElse) {
  const Epsilons found = fitted(random_values(kTokens * kWidth, 9), true, 1e-5, 1e-2, DType::f32);
  EXPECT_FALSE(found.a);
  EXPECT_FALSE(found.b);
}

}  // namespace
}  // namespace tensordiff
