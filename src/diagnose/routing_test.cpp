#include "diagnose/routing.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "diagnose/toy_mistakes.h"

namespace tensordiff {
namespace {

using Change = std::function<double(double value, uint64_t token, uint64_t feature)>;

Insight with_change(DType dtype, const Change& change) {
  const ToyShape shape;
  ToyModel model(shape, 11);
  ToyMistakes wrong;
  wrong.after["post_mlp"] = each(shape.width(), change);
  const auto a = model.run(DType::f32, false, {}), b = model.run(dtype, true, {wrong});
  return diagnose(sites_of(a, DType::f32, b, dtype), {});
}

// Half of the token comes from another expert.
double rerouted(double value, uint64_t feature) {
  return 0.6 * value + 0.8 * std::sin(double(feature * feature));
}

TEST(Routing, TakesATurnedTieForNoise) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const Insight insight = with_change(dtype, [](double x, uint64_t token, uint64_t i) {
      return token == 6 ? rerouted(x, i) : x;
    });
    EXPECT_FALSE(insight.first) << name_of(dtype);
    const auto told = [](const Outcome& outcome) {
      return outcome.note.starts_with("tokens 6 come out as if they took other experts");
    };
    EXPECT_EQ(std::ranges::count_if(insight.outcomes, told), 1) << name_of(dtype);
  }
}

TEST(Routing, ForgivesNoMistake) {
  const Change changes[] = {
      [](double x, uint64_t token, uint64_t) { return token == 6 ? 0 : x; },
      [](double x, uint64_t token, uint64_t) { return token == 6 ? 2 * x : x; },
      [](double x, uint64_t token, uint64_t i) { return token == 6 && i == 3 ? x + 9 : x; },
      [](double x, uint64_t token, uint64_t i) { return token > 13 ? rerouted(x, i) : x; },
      [](double x, uint64_t token, uint64_t i) { return token % 2 ? rerouted(x, i) : x; }};
  for (const Change& change : changes) {
    for (const DType dtype : {DType::f16, DType::bf16})
      EXPECT_TRUE(with_change(dtype, change).first) << name_of(dtype) << &change - changes;
  }
}

// Where nothing is rounded, no tie turns.
TEST(Routing, FindsNoTiesInFloat32) {
  EXPECT_TRUE(with_change(DType::f32, [](double x, uint64_t token, uint64_t i) {
                return token == 6 ? rerouted(x, i) : x;
              }).first);
}

}  // namespace
}  // namespace tensordiff
