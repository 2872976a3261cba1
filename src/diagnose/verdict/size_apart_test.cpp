#include "diagnose/verdict/size_apart.h"

#include <gtest/gtest.h>

#include "diagnose/toys/toy_mistakes.h"
#include "diagnose/toys/toy_values.h"
#include "diagnose/verdict/carried.h"
#include "diagnose/verdict/judge.h"

namespace tensordiff {
namespace {

constexpr uint64_t kTokens = 24, kWidth = 32, kLayers = 4;

// Norms of two models that have `common` in common, and MLPs that share nothing but how large their
// values are; in layer 2 those of B's norm and MLP are so many times as large.
tensordiff::Run run_with(double of_norm, double of_mlp, double of_all = 1, double common = 0.9) {
  std::vector<ToyModel::Dump> a, b;
  for (unsigned layer = 0; layer < kLayers; ++layer) {
    const bool here = layer == 2;
    const auto add = [&](const std::string& stage, unsigned seed, double factor) {
      a.push_back({stage,
                   layer,
                   {kTokens, kWidth},
                   random_values(kTokens * kWidth, 100 * layer + seed, 1)});
      b.push_back({stage,
                   layer,
                   {kTokens, kWidth},
                   random_values(kTokens * kWidth, 100 * layer + seed + 9, factor)});
    };
    add("pre_mlp", 1, here ? of_norm : 1);
    Values &norm_a = a.back().values, &norm_b = b.back().values;
    for (std::size_t i = 0; i < norm_b.size(); ++i)
      norm_b[i] =
          std::sqrt(1 - common * common) * norm_b[i] + common * (here ? of_norm : 1) * norm_a[i];
    add("post_mlp", 2, here ? of_mlp : of_all);
  }
  tensordiff::Run run = make_run(sites_of(a, DType::f32, b, DType::f32), {});
  judge(run);
  for (Site& site : run.sites) site.created = false;
  return run;
}

std::optional<Explanation> found_at(const tensordiff::Run& run, const Site& site) {
  const std::optional<Case> it = values_of(run, site);
  return it ? size_apart(*it) : std::nullopt;
}

std::optional<Explanation> found(const tensordiff::Run& run) {
  std::optional<Explanation> only;
  for (const Site& site : run.sites) {
    std::optional<Explanation> here = found_at(run, site);
    if (here) {
      EXPECT_EQ(site.a.name, "2_post_mlp");
      only = std::move(here);
    }
  }
  return only;
}

TEST(SizeApart, TellsAFactorOfValuesThatHaveNothingInCommon) {
  for (const double factor : {0.5, 2.0}) {
    const std::optional<Explanation> explanation = found(run_with(1, factor));
    ASSERT_TRUE(explanation) << factor;
    EXPECT_NEAR(std::get<double>(explanation->parameters[0].value), factor, 0.1 * factor);
  }
}

// What is unrelated to A's meets other weights and comes out of any size.
TEST(SizeApart, SaysNothingWhereWhatComesInIsUnrelated) {
  EXPECT_FALSE(found(run_with(1, 2, 1, 0)));
}

TEST(SizeApart, SaysNothingWhereItIsSmallOrCameIn) {
  EXPECT_FALSE(found(run_with(1, 1)));
  EXPECT_FALSE(found(run_with(1, 1.15)));
  EXPECT_FALSE(found(run_with(1.5, 2))) << "what comes in is larger, too";
  EXPECT_FALSE(found(run_with(1, 2, 1.6))) << "other layers are larger, too";
}

TEST(SizeApart, SaysNothingOfAFewLargeTokens) {
  tensordiff::Run run = run_with(1, 1);
  Site& site = run.sites[5];
  ASSERT_EQ(site.a.name, "2_post_mlp");
  Values values = random_values(kTokens * kWidth, 211, 1);
  for (uint64_t i = 0; i < kWidth; ++i) values[i] *= 20;
  site.views.b = view_of({kTokens, kWidth}, values, DType::f32);
  site.comparison = compare(site.views).value();
  ASSERT_GT(site.comparison.diff.norm_ratio.value_or(0), 2);
  EXPECT_FALSE(found_at(run, site));
}

}  // namespace
}  // namespace tensordiff
