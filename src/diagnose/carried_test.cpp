// Two mistakes in different layers: behind the first all inputs differ, and the second is found all
// the same, by its name; and nothing is that only carries the first.

#include "diagnose/carried.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "diagnose/expected.h"
#include "diagnose/explain.h"
#include "diagnose/noise.h"
#include "diagnose/toy_mistakes.h"

namespace tensordiff {
namespace {

struct Two {
  ToyExample one, two;
  std::vector<Site> sites;
  Insight insight;
};

// Two mistakes of different kinds, in layers 1 and 3 of a random model.
Two two_mistakes(DType dtype, unsigned seed, bool with_weights) {
  std::mt19937 random(seed);
  ToyShape shape = random_shape(random);
  shape.layers = 4;
  const std::vector<ToyExample> all = examples();
  Two made;
  made.one = all[below(all.size(), random)];
  made.two = all[below(all.size(), random)];
  ToyModel model(shape, seed);
  ToyMistakes one, two;
  one.layer = 1, two.layer = 3;
  made.one.make(one, shape, random);
  made.two.make(two, shape, random);
  made.sites = sites_of(model.run(DType::f32, false, {}), DType::f32,
                        model.run(dtype, true, {one, two}), dtype);
  DiagnoseOptions options;
  if (with_weights) options.weights = Weights(model.weights());
  made.insight = diagnose(made.sites, options);
  return made;
}

// Steps that are computed again from b's own inputs: what they do wrong is found behind anything.
bool always_told(const ToyExample& example) {
  return example.stage == "query_final" || example.stage == "post_attn" ||
         example.stage == "post_ln_pre_attn" || example.stage == "output";
}

std::string code_at(const Two& made, const std::string& name) {
  for (const Finding& finding : made.insight.findings)
    if (made.sites[finding.pair].name_a == name) return finding.code;
  return "";
}

// Both are found. Without weights a projection or an MLP may hide behind what comes into it.
void expect_both(DType dtype, unsigned seed, bool with_weights = false) {
  const Two made = two_mistakes(dtype, seed, with_weights);
  const std::string first = "1_" + made.one.stage, second = "3_" + made.two.stage;
  SCOPED_TRACE(fmt::format("{} and {} in {}, seed {}: {}", made.one.code, made.two.code,
                           name_of(dtype), seed, describe(made.insight, made.sites)));
  ASSERT_TRUE(made.insight.first);
  EXPECT_EQ(made.sites[made.insight.first->pair].name_a, first);
  EXPECT_EQ(code_at(made, first), made.one.code);
  bool found = false;
  for (const Divergence& next : made.insight.next) {
    const Site& site = made.sites[next.pair];
    // RoPE that is wrong is so for keys, too.
    const bool of_keys = site.stage == "key_final";
    EXPECT_TRUE(site.name_a == second || of_keys) << "carried: " << site.name_a;
    found = found || site.name_a == second;
  }
  // What is no number hides all that comes behind it.
  if (made.one.code == "nonfinite" || !(with_weights || always_told(made.two))) return;
  EXPECT_TRUE(found);
  // An order of axes is sought in all of a, which says nothing behind a first mistake.
  const bool hidden = with_weights && made.two.code == "axis_permutation";
  EXPECT_EQ(code_at(made, second), hidden ? "operator" : made.two.code);
}

TEST(Carried, FindsTwoMistakesInFloat32) {
  for (unsigned seed = 1; seed <= 24 * seeds(); ++seed) expect_both(DType::f32, seed);
}

TEST(Carried, FindsAnyTwoMistakesWithWeights) {
  for (unsigned seed = 1; seed <= 48 * seeds(); ++seed) expect_both(DType::f32, 300 + seed, true);
  for (unsigned seed = 1; seed <= 8 * seeds(); ++seed) expect_both(DType::bf16, 400 + seed, true);
}

TEST(Carried, FindsTwoMistakesUnderTheNoiseOfNarrowTypes) {
  for (unsigned seed = 1; seed <= 8 * seeds(); ++seed) {
    expect_both(DType::bf16, 100 + seed);
    expect_both(DType::f16, 200 + seed);
  }
}

// A residual stream that was not dumped shows in the norms that read it.
TEST(Carried, SeesTheStreamInItsNorms) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    std::mt19937 random(5);
    ToyShape shape = random_shape(random);
    ToyModel model(shape, 5);
    ToyMistakes one, two;
    one.layer = 0, two.layer = 2;
    one.masked = false;
    two.weighted = false;
    auto a = model.run(DType::f32, false, {}), b = model.run(dtype, true, {one, two});
    const auto stream = [](const ToyModel::Dump& dump) { return dump.stage == "output"; };
    std::erase_if(a, stream);
    std::erase_if(b, stream);
    const std::vector<Site> sites = sites_of(a, DType::f32, b, dtype);
    const Insight insight = diagnose(sites, {});
    SCOPED_TRACE(fmt::format("{}: {}", name_of(dtype), describe(insight, sites)));
    ASSERT_EQ(insight.next.size(), 1U);
    EXPECT_EQ(sites[insight.next[0].pair].name_a, "2_post_ln_pre_attn");
    EXPECT_TRUE(insight.next[0].created);
    const auto found = std::ranges::find(insight.findings, insight.next[0].pair, &Finding::pair);
    ASSERT_NE(found, insight.findings.end());
    EXPECT_EQ(found->code, "norm_weight");
  }
}

// Attention that cannot be computed again: only how far it is off tells, next to what comes in.
TEST(Carried, FindsWhatIsFarBeyondWhatComesIn) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    ToyShape shape;
    shape.head_norm = true;
    ToyModel model(shape, 9);
    ToyMistakes one, two;
    one.layer = 0, two.layer = 2;
    one.after["post_attn_pre_resid"] =
        each(shape.width(), [](double x, auto, uint64_t i) { return i == 5 ? 2 * x : x; });
    two.masked = false;
    auto a = model.run(DType::f32, false, {}), b = model.run(dtype, true, {one, two});
    const auto hidden = [](const ToyModel::Dump& dump) { return dump.stage.ends_with("_final"); };
    std::erase_if(a, hidden);
    std::erase_if(b, hidden);
    const std::vector<Site> sites = sites_of(a, DType::f32, b, dtype);
    const Insight insight = diagnose(sites, {});
    SCOPED_TRACE(fmt::format("{}: {}", name_of(dtype), describe(insight, sites)));
    ASSERT_TRUE(insight.first);
    EXPECT_EQ(sites[insight.first->pair].name_a, "0_post_attn_pre_resid");
    ASSERT_EQ(insight.next.size(), 1U);
    EXPECT_EQ(sites[insight.next[0].pair].name_a, "2_post_attn");
  }
}

// The next divergence behind a mask that is missing in layer 0, with a stage not dumped.
std::string next_behind(std::vector<ToyMistakes> mistakes, std::string_view hidden, DType dtype) {
  ToyModel model({}, 6);
  ToyMistakes one;
  one.layer = 0;
  one.masked = false;
  mistakes.push_back(one);
  auto a = model.run(DType::f32, false, {}), b = model.run(dtype, true, mistakes);
  const auto is_hidden = [&](const ToyModel::Dump& dump) { return dump.stage == hidden; };
  std::erase_if(a, is_hidden);
  std::erase_if(b, is_hidden);
  const std::vector<Site> sites = sites_of(a, DType::f32, b, dtype);
  const Insight insight = diagnose(sites, {});
  std::string text;
  for (const Divergence& next : insight.next) {
    const auto found = std::ranges::find(insight.findings, next.pair, &Finding::pair);
    text += sites[next.pair].name_a + " " + (found == insight.findings.end() ? "" : found->code);
  }
  return text;
}

TEST(Carried, FindsTokensThatAreLeftEmpty) {
  const ToyShape shape;
  ToyMistakes two;
  two.layer = 2;
  const uint64_t width = shape.kv_heads * shape.dim;
  two.after["key"] =
      each(width, [&](double x, uint64_t row, auto) { return row + 3 >= shape.tokens ? 0 : x; });
  for (const DType dtype : {DType::f32, DType::bf16})
    EXPECT_EQ(next_behind({two}, "output", dtype), "2_key region");
}

TEST(Carried, FindsTokensThatANormLeavesEmpty) {
  const ToyShape shape;
  ToyMistakes two;
  two.layer = 2;
  two.after["post_ln_pre_attn"] = each(
      shape.width(), [&](double x, uint64_t row, auto) { return row + 3 >= shape.tokens ? 0 : x; });
  for (const DType dtype : {DType::f32, DType::bf16})
    EXPECT_EQ(next_behind({two}, "output", dtype), "2_post_ln_pre_attn region");
}

TEST(Carried, FindsANormThatIsTurnedRound) {
  ToyMistakes two;
  two.layer = 2;
  two.after["post_ln_pre_attn"] = each(ToyShape{}.width(), [](double x, auto, auto) { return -x; });
  for (const DType dtype : {DType::f32, DType::bf16})
    EXPECT_EQ(next_behind({two}, "output", dtype), "2_post_ln_pre_attn scale");
}

// What b holds twice is wrong once, however far it is from a.
TEST(Carried, FindsWhatIsLeftFromTheLayerBefore) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Values kept;
    ToyMistakes before, stale;
    before.layer = 1, stale.layer = 2;
    before.after["key"] = [&](Values& values) { kept = values; };
    stale.after["key"] = [&](Values& values) { values = kept; };
    EXPECT_EQ(next_behind({before, stale}, "output", dtype), "2_key other_tensor");
  }
}

// Without the stream a norm is not computed again, but its size is its own.
TEST(Carried, FindsANormOfAnotherSize) {
  ToyMistakes two;
  two.layer = 2;
  two.plus = 1;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
    EXPECT_EQ(next_behind({two}, "output", dtype), "2_post_ln_pre_attn norm_weight");
}

TEST(Explain, TellsOfNoStepThatOnlyCarries) {
  ToyModel model({}, 3);
  ToyMistakes one, two;
  one.layer = 0, two.layer = 2;
  one.masked = two.masked = false;
  tensordiff::Run run = make_run(sites_of(model.run(DType::f32, false, {}), DType::f32,
                                          model.run(DType::f32, true, {one, two}), DType::f32),
                                 {});
  judge(run);
  std::size_t carried = 0;
  for (const Site& site : run.sites) {
    if (!site.bug() || site.created) continue;
    const Told told = explain_carried(run, {}, site);
    EXPECT_EQ(told.made_here, site.name_a == "2_post_attn") << site.name_a;
    if (told.finding) {
      EXPECT_EQ(told.finding->code, "attention_mask");
    }
    ++carried;
  }
  EXPECT_GT(carried, 10U);
}

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

}  // namespace
}  // namespace tensordiff
