#include "diagnose/replay/expected.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "diagnose/toys/toy_mistakes.h"

namespace tensordiff {
namespace {

TEST(Expected, IsMetWhereAStepOnlyCarries) {
  ToyModel model({}, 3);
  ToyMistakes wrong;
  wrong.layer = 0;
  wrong.after["query"] = each(ToyShape{}.width(), [](double x, auto, auto) { return 2 * x; });
  const tensordiff::Run run = make_run(sites_of(model.run(DType::f32, false, {}), DType::f32,
                                                model.run(DType::f32, true, {wrong}), DType::f32),
                                       {});
  std::size_t computed = 0;
  for (Site site : run.sites) {
    site.roundoff = std::ldexp(1, -24);
    const std::optional<Expected> expected = expected_of(run, site);
    if (!expected) continue;
    EXPECT_TRUE(expected->met()) << site.a.name << " " << expected->left;
    ++computed;
  }
  // Four stages of each layer, and norms and sums of all but the first.
  EXPECT_GE(computed, 12U);
}

// More tokens than are looked at, of which the last ones changed places behind a mistake.
TEST(Expected, IsLookedForWhereTheDifferenceIs) {
  constexpr uint64_t kTokens = 5000, kWidth = 16;
  std::mt19937 random(4);
  std::normal_distribution<double> normal;
  Values right, wrong;
  for (uint64_t i = 0; i < kTokens * kWidth; ++i) {
    right.push_back(normal(random));
    wrong.push_back(right.back() + 0.1 * normal(random));
  }
  Values moved = wrong;
  const auto row = [&](uint64_t i) { return moved.begin() + std::ptrdiff_t(i * kWidth); };
  std::swap_ranges(row(4900), row(4950), row(4950));
  const Shape shape = {kTokens, kWidth};
  const auto run_of = [&](const Values& last) {
    const std::vector<ToyModel::Dump> a = {{"value", 0, shape, right},
                                           {"value_final", 0, shape, right}};
    const std::vector<ToyModel::Dump> b = {{"value", 0, shape, wrong},
                                           {"value_final", 0, shape, last}};
    return make_run(sites_of(a, DType::f32, b, DType::f32), {});
  };
  const auto met = [](const tensordiff::Run& run) {
    const std::optional<Expected> expected = expected_of(run, run.sites[1]);
    return expected && expected->met();
  };
  EXPECT_TRUE(met(run_of(wrong)));
  EXPECT_FALSE(met(run_of(moved)));
}

// A norm of b that reads other tokens than a's, which are all nearly the same: rounding hides what
// its weights are.
TEST(Expected, IsNotKnownWhereTokensAreAlike) {
  constexpr uint64_t kTokens = 20, kWidth = 32;
  std::mt19937 random(4);
  std::normal_distribution<double> normal;
  Values weight(kWidth), bias(kWidth);
  for (double& value : weight) value = 1 + 0.3 * normal(random);
  for (double& value : bias) value = 0.3 * normal(random);
  const auto dump_of = [&](double apart) {
    Values shared(kWidth), stream(kTokens * kWidth), out = stream;
    for (double& value : shared) value = normal(random);
    for (uint64_t row = 0; row < kTokens; ++row) {
      double sum = 0, squares = 0;
      for (uint64_t i = 0; i < kWidth; ++i) {
        double& x = stream[row * kWidth + i];
        x = as_stored(shared[i] + apart * normal(random), DType::f16);
        sum += x, squares += x * x;
      }
      const double mean = sum / kWidth, size = std::sqrt(squares / kWidth - mean * mean);
      for (uint64_t i = 0; i < kWidth; ++i) {
        const uint64_t at = row * kWidth + i;
        out[at] = (stream[at] - mean) / size * weight[i] + bias[i];
      }
    }
    return std::vector<ToyModel::Dump>{{"output", 0, {kTokens, kWidth}, stream},
                                       {"post_ln_pre_attn", 1, {kTokens, kWidth}, out}};
  };
  for (const double apart : {0.005, 1.0}) {
    const auto a = dump_of(apart), b = dump_of(apart);
    tensordiff::Run run = make_run(sites_of(a, DType::f16, b, DType::f16), {});
    run.sites[1].roundoff = std::ldexp(1, -11);
    const std::optional<Expected> expected = expected_of(run, run.sites[1]);
    EXPECT_EQ(expected.has_value(), apart == 1.0);
    EXPECT_TRUE(!expected || expected->met());
  }
}

}  // namespace
}  // namespace tensordiff
