#include "diagnose/operators/routing.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "diagnose/toys/toy_mistakes.h"
#include "diagnose/toys/toy_steps.h"

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

// An expert with a token more than in A, where what comes in is off by so much.
bool other_tokens(uint64_t more, double error_in) {
  tensordiff::Run run;
  run.extent = {2, 7};
  Site site;
  site.a.place.expert = 2;
  site.a.shape = {5, 56};
  site.b.shape = {5 + more, 56};
  site.comparison.status = Status::incomparable;
  site.error_in = error_in;
  return got_other_tokens(run, site);
}

TEST(Routing, LetsAnExpertHaveAsManyTokensMoreAsTiesMakeLikely) {
  EXPECT_TRUE(other_tokens(1, 0.006));
  EXPECT_FALSE(other_tokens(5, 0.006));
  EXPECT_FALSE(other_tokens(1, 1e-7));
}

// Rows of a table that what comes in picks, as the nearest of some codes.
TEST(Routing, TakesACodeNearATieForNoise) {
  const Values in = random_values(16 * 24, 1), codes = random_values(8 * 24, 2);
  Values rounded = in, picked;
  for (double& value : rounded) value *= 1 + 0x1p-9;
  for (std::size_t row = 0; row < 16; ++row)
    picked.insert(picked.end(), codes.begin() + std::ptrdiff_t(row * 5 % 8 * 24),
                  codes.begin() + std::ptrdiff_t(row * 5 % 8 * 24 + 24));
  Values other = picked;
  std::copy_n(codes.begin(), 24, other.begin() + std::ptrdiff_t(7 * 24));
  const auto rows = [&](const Values& of_b, const Values& read_by_b) {
    tensordiff::Run run;
    run.sites = sites_of({{"layers.0.conv", in, read_by_b}, {"layers.0.codes", picked, of_b}});
    run.sites[1].inputs = {0};
    run.sites[1].error_in = 0x1p-9;
    return rechosen_rows(run, run.sites[1]);
  };
  EXPECT_EQ(rows(other, rounded), std::vector<uint64_t>{7});
  EXPECT_TRUE(rows(other, in).empty()) << "nothing moved it";
  std::fill_n(other.begin() + std::ptrdiff_t(7 * 24), 24, 0);
  EXPECT_TRUE(rows(other, rounded).empty()) << "an empty row is no code";
}

TEST(Routing, TakesATurnedTieForNoise) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const Insight insight = with_change(dtype, [](double x, uint64_t token, uint64_t i) {
      return token == 6 ? rerouted(x, i) : x;
    });
    EXPECT_FALSE(insight.first) << name_of(dtype);
    const auto told = [](const Outcome& outcome) {
      return outcome.note.starts_with("tokens 6 took other experts");
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

// What took the place of another token took no other expert, however akin the two are.
TEST(Routing, KnowsTokensThatChangedPlaces) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    ToyModel model({}, 4);
    const uint64_t width = ToyShape{}.width();
    ToyMistakes wrong;
    wrong.after["post_mlp"] = [&](Values& values) {
      const auto token = [&](uint64_t i) {
        return values.begin() + static_cast<int64_t>(i * width);
      };
      // Akin: the later one has a part of the earlier.
      std::transform(token(9), token(10), token(6), token(9),
                     [](double later, double earlier) { return 0.5 * later + 0.5 * earlier; });
      std::copy(token(9), token(9) + static_cast<int64_t>(width), token(6));
    };
    ToyMistakes right;
    right.after["post_mlp"] = [&](Values& values) {
      for (uint64_t i = 0; i < width; ++i)
        values[9 * width + i] = 0.5 * values[9 * width + i] + 0.5 * values[6 * width + i];
    };
    const auto a = model.run(DType::f32, false, {right}), b = model.run(dtype, true, {wrong});
    EXPECT_TRUE(diagnose(sites_of(a, DType::f32, b, dtype), {}).first) << name_of(dtype);
  }
}

// Where nothing is rounded, no tie turns.
TEST(Routing, FindsNoTiesInFloat32) {
  EXPECT_TRUE(with_change(DType::f32, [](double x, uint64_t token, uint64_t i) {
                return token == 6 ? rerouted(x, i) : x;
              }).first);
}

// The activation that all experts call has one entry, with the tokens of the last one.
TEST(Routing, TakesTheTokensOfASharedActivationForASet) {
  const Values in = random_values(16 * 24, 1), a = random_values(16 * 24, 2);
  Values b(a);
  std::rotate(b.begin(), b.begin() + 24, b.end());
  const Values out = random_values(16 * 24, 3);
  std::vector<Held> held = {{"model.layers.0.mlp.gate", in, in},
                            {"model.layers.0.mlp.experts.act_fn", a, b},
                            {"model.layers.0.mlp.experts", out, out}};
  EXPECT_EQ(alarms(held), "");
  for (double& value : held[1].b) value *= 2;
  EXPECT_EQ(alarms(held), "model.layers.0.mlp.experts.act_fn ");
}

}  // namespace
}  // namespace tensordiff
