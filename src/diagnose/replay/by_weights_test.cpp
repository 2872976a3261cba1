#include "diagnose/replay/by_weights.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "diagnose/toys/toy_mistakes.h"
#include "diagnose/verdict/judge.h"

namespace tensordiff {
namespace {

// A factor that the noise of bf16 hides at the output of attention, in layer 1.
tensordiff::Run judged_run(double factor, bool with_weights) {
  ToyShape shape;
  shape.layers = 2;  // Too few to tell how noise grows at a step.
  ToyModel model(shape, 7);
  ToyMistakes wrong;
  wrong.after["post_attn_pre_resid"] = each(shape.width(), [=](double x, uint64_t row, uint64_t i) {
    return x * (1 + factor * std::sin(double(31 * row + 17 * i)));
  });
  tensordiff::Run run = make_run(sites_of(model.run(DType::f32, false, {}), DType::f32,
                                          model.run(DType::bf16, true, {wrong}), DType::bf16),
                                 {});
  if (with_weights) run.weights = Weights(model.weights());
  judge(run);
  return run;
}

TEST(ByWeights, TellWhatTheNoiseOfNarrowTypesHides) {
  for (const bool with_weights : {false, true}) {
    const tensordiff::Run run = judged_run(0.11, with_weights);
    const auto site =
        std::ranges::find(run.sites, "1_post_attn_pre_resid",
                          [](const Site& each) -> const std::string& { return each.a.name; });
    ASSERT_NE(site, run.sites.end());
    EXPECT_EQ(site->bug(), with_weights) << site->error << " of " << site->budget;
    const std::vector<bool> against = against_weights(run);
    EXPECT_EQ(against.at(static_cast<std::size_t>(site - run.sites.begin())), with_weights);
  }
}

TEST(ByWeights, SayNothingAgainstACleanRun) {
  const tensordiff::Run run = judged_run(0, true);
  for (const bool against : against_weights(run)) EXPECT_FALSE(against);
  for (const Site& site : run.sites) EXPECT_FALSE(site.bug()) << site.a.name;
}

}  // namespace
}  // namespace tensordiff
