#include "diagnose/growth.h"

#include <gtest/gtest.h>

#include "diagnose/noise.h"
#include "diagnose/toy_mistakes.h"

namespace tensordiff {
namespace {

constexpr uint64_t kTokens = 48, kWidth = 32, kLayers = 12, kMistake = 1;

Values random_values(unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Values values(kTokens * kWidth);
  for (double& value : values) value = normal(random);
  return values;
}

// Norms that are off by `noise`, and MLPs that are off by what `error_of` says of their layer;
// little of it before the mistake.
template <typename ErrorOf>
tensordiff::Run run_with(double noise, const ErrorOf& error_of, uint64_t layers = kLayers) {
  std::vector<ToyModel::Dump> a, b;
  for (unsigned layer = 0; layer < layers; ++layer)
    for (const std::string stage : {"pre_mlp", "post_mlp"}) {
      const unsigned seed = 10 * layer + (stage == "pre_mlp" ? 0 : 2);
      const double behind = stage == "pre_mlp" ? noise : error_of(layer);
      const double error = layer < kMistake ? std::min(behind, 0.05) : behind;
      const Values values = random_values(seed), apart = random_values(seed + 1);
      Values off = values;
      for (std::size_t i = 0; i < off.size(); ++i) off[i] += error * apart[i];
      a.push_back({stage, layer, {kTokens, kWidth}, values});
      b.push_back({stage, layer, {kTokens, kWidth}, off});
    }
  tensordiff::Run run = make_run(sites_of(a, DType::bf16, b, DType::bf16), {});
  judge(run);
  return run;
}

// The names of the sites that a question is answered with yes for.
template <typename Question>
std::vector<std::string> which(const tensordiff::Run& run, const Question& question) {
  std::vector<std::string> names;
  for (const Site& site : run.sites)
    if (question(site)) names.push_back(site.name_a);
  return names;
}

std::vector<std::string> out_of_line_in(const tensordiff::Run& run) {
  return which(run, [&](const Site& site) { return out_of_line(run, site); });
}

double wrong_at_first(unsigned layer, double usual) { return layer == kMistake ? 1.3 : usual; }

TEST(Growth, TellsTheStepThatMakesMoreOfWhatComesInThanInOtherLayers) {
  const auto run =
      run_with(0.3, [](unsigned layer) { return layer == 7 ? 0.7 : wrong_at_first(layer, 0.4); });
  EXPECT_EQ(out_of_line_in(run), std::vector<std::string>({"7_post_mlp"}));
}

TEST(Growth, TellsItAlsoWhereLittleOfAIsLeft) {
  const auto run =
      run_with(3, [](unsigned layer) { return layer == 7 ? 60 : wrong_at_first(layer, 3.5); });
  EXPECT_EQ(out_of_line_in(run), std::vector<std::string>({"7_post_mlp"}));
}

TEST(Growth, SaysNothingWhereOtherLayersDifferAsMuch) {
  const auto run = run_with(0.3, [](unsigned layer) {
    return layer == 7 ? 0.7 : wrong_at_first(layer, layer % 3 == 0 ? 0.3 : 0.5);
  });
  EXPECT_EQ(out_of_line_in(run), std::vector<std::string>());
}

TEST(Growth, SaysNothingOfFewLayersOrRightBehindTheMistake) {
  const auto few = run_with(
      0.3, [](unsigned layer) { return layer == 5 ? 0.7 : wrong_at_first(layer, 0.4); }, 7);
  EXPECT_EQ(out_of_line_in(few), std::vector<std::string>());
  const auto near =
      run_with(0.3, [](unsigned layer) { return layer == 2 ? 0.7 : wrong_at_first(layer, 0.4); });
  EXPECT_EQ(out_of_line_in(near), std::vector<std::string>());
}

// Noise that is loud before the mistake would allow all that follows.
TEST(Growth, BoundsWhatRoundingMayLeaveBehindAMistake) {
  const auto run =
      run_with(0.05, [](unsigned layer) { return layer == 7 ? 0.2 : wrong_at_first(layer, 0.05); });
  EXPECT_EQ(which(run, [](const Site& site) { return site.bug(); }),
            std::vector<std::string>({"1_post_mlp", "7_post_mlp"}));
  const auto created = which(run, [](const Site& site) { return site.created; });
  EXPECT_EQ(created, std::vector<std::string>({"1_post_mlp"}));
}

}  // namespace
}  // namespace tensordiff
