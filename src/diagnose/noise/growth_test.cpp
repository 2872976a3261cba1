#include "diagnose/noise/growth.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "diagnose/diagnose.h"
#include "diagnose/toys/toy_mistakes.h"
#include "diagnose/toys/toy_values.h"
#include "diagnose/verdict/judge.h"

namespace tensordiff {
namespace {

constexpr uint64_t kTokens = 48, kWidth = 32, kLayers = 12, kMistake = 1;

double product(const Values& x, const Values& y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

// Values that are off by something unrelated, so many times as large; by one vector for all tokens
// where `shared`.
Values off_by(const Values& values, double error, unsigned seed, bool shared = false) {
  Values apart = random_values(kTokens * kWidth, seed), result = values;
  if (shared)
    for (std::size_t i = kWidth; i < apart.size(); ++i) apart[i] = apart[i - kWidth];
  const double related = product(apart, values) / product(values, values);
  for (std::size_t i = 0; i < apart.size(); ++i) apart[i] -= related * values[i];
  const double factor = error * std::sqrt(product(values, values) / product(apart, apart));
  for (std::size_t i = 0; i < apart.size(); ++i) result[i] += factor * apart[i];
  return result;
}

// Norms that are off by `noise`, and MLPs that are off by what `error_of` says of their layer;
// little of it before the mistake.
template <typename ErrorOf>
std::vector<Site> sites_with(double noise, const ErrorOf& error_of, uint64_t layers = kLayers,
                             bool shared = false) {
  std::vector<ToyModel::Dump> a, b;
  for (unsigned layer = 0; layer < layers; ++layer)
    for (const std::string stage : {"pre_mlp", "post_mlp"}) {
      const unsigned seed = 10 * layer + (stage == "pre_mlp" ? 0 : 2);
      const double behind = stage == "pre_mlp" ? noise : error_of(layer);
      const double error = layer < kMistake ? std::min(behind, 0.05) : behind;
      a.push_back({stage, layer, {kTokens, kWidth}, random_values(kTokens * kWidth, seed)});
      b.push_back({stage,
                   layer,
                   {kTokens, kWidth},
                   off_by(a.back().values, error, seed + 1, shared && layer >= kMistake)});
    }
  return sites_of(a, DType::bf16, b, DType::bf16);
}

template <typename ErrorOf>
tensordiff::Run run_with(double noise, const ErrorOf& error_of, uint64_t layers = kLayers) {
  tensordiff::Run run = make_run(sites_with(noise, error_of, layers), {});
  judge(run);
  return run;
}

// The names of the sites that a question is answered with yes for.
template <typename Question>
std::vector<std::string> which(const tensordiff::Run& run, const Question& question) {
  std::vector<std::string> names;
  for (const Site& site : run.sites)
    if (question(site)) names.push_back(site.a.name);
  return names;
}

std::vector<std::string> out_of_line_in(const tensordiff::Run& run) {
  return which(run, [&](const Site& site) { return out_of_line(run, site); });
}

// What all layers have, but for that of the first mistake and layer 7.
auto usually(double usual, double in_7) {
  return [=](unsigned layer) { return layer == kMistake ? 1.3 : layer == 7 ? in_7 : usual; };
}

// The same, but for two more layers that have something between.
auto spread(double usual, double in_two, double in_7) {
  return [=](unsigned layer) {
    return layer == 5 || layer == 9 ? in_two : usually(usual, in_7)(layer);
  };
}

const std::vector<std::string> kNone, kOfLayer7 = {"7_post_mlp"};

TEST(Growth, TellsTheStepThatMakesMoreOfWhatComesInThanInOtherLayers) {
  EXPECT_EQ(out_of_line_in(run_with(0.3, usually(0.4, 0.9))), kOfLayer7);
  EXPECT_EQ(out_of_line_in(run_with(3, usually(3.5, 60))), kOfLayer7) << "little of a is left";
  EXPECT_EQ(out_of_line_in(run_with(0.3, usually(0.4, 0.75))), kNone) << "not far enough";
}

TEST(Growth, SaysNothingWhereOtherLayersAreNearlyAsFarOff) {
  EXPECT_EQ(out_of_line_in(run_with(0.1, spread(0.1, 0.17, 0.25))), kNone) << "by the factor";
  EXPECT_EQ(out_of_line_in(run_with(0.1, spread(0.1, 0.15, 0.3))), kOfLayer7);
  EXPECT_EQ(out_of_line_in(run_with(3, spread(3.5, 5, 8))), kNone) << "by what is left of a";
  EXPECT_EQ(out_of_line_in(run_with(3, spread(3.5, 5, 30))), kOfLayer7);
}

TEST(Growth, SaysNothingOfFewLayersOrRightBehindTheMistake) {
  const auto in_layer = [](unsigned which) {
    return [=](unsigned layer) { return layer == which ? 0.9 : usually(0.4, 0.4)(layer); };
  };
  EXPECT_EQ(out_of_line_in(run_with(0.3, in_layer(5), 7)), kNone);
  EXPECT_EQ(out_of_line_in(run_with(0.3, in_layer(2))), kNone);
  EXPECT_EQ(out_of_line_in(run_with(0.3, in_layer(3))), std::vector<std::string>({"3_post_mlp"}));
}

TEST(Growth, SaysNothingOfFewTokens) {
  auto run = run_with(0.3, usually(0.4, 0.9));
  run.extent.tokens = 12;
  EXPECT_EQ(out_of_line_in(run), kNone);
}

TEST(Growth, IsToldAsAMistakeButForOneVectorOfAllTokens) {
  for (const bool shared : {false, true}) {
    const std::vector<Site> sites = sites_with(0.3, usually(0.4, 0.85), kLayers, shared);
    const std::vector<Divergence> next = diagnose(sites, {}).next;
    const bool told = std::ranges::any_of(
        next, [&](const Divergence& each) { return sites[each.pair].a.name == "7_post_mlp"; });
    EXPECT_EQ(told, !shared);
  }
}

// Noise that is loud before the mistake would allow all that follows.
TEST(Growth, BoundsWhatRoundingMayLeaveBehindAMistake) {
  const auto run = run_with(0.05, usually(0.05, 0.16));
  EXPECT_EQ(which(run, [](const Site& site) { return site.bug(); }),
            std::vector<std::string>({"1_post_mlp", "7_post_mlp"}));
  EXPECT_EQ(which(run, [](const Site& site) { return site.created; }),
            std::vector<std::string>({"1_post_mlp"}));
}

}  // namespace
}  // namespace tensordiff
