#include "diagnose/expected.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "diagnose/toy_mistakes.h"

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
    EXPECT_TRUE(expected->met()) << site.name_a << " " << expected->left;
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

}  // namespace
}  // namespace tensordiff
