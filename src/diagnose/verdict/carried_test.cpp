// Two mistakes in different layers: behind the first all inputs differ, and the second is found all
// the same, by its name; and nothing is that only carries the first.

#include "diagnose/verdict/carried.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "diagnose/toys/toy_mistakes.h"
#include "diagnose/toys/toy_values.h"
#include "diagnose/verdict/explain.h"
#include "diagnose/verdict/judge.h"

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
    if (made.sites[finding.pair].a.name == name) return finding.code;
  return "";
}

// Both are found. Without weights a projection or an MLP may hide behind what comes into it.
void expect_both(DType dtype, unsigned seed, bool with_weights = false) {
  const Two made = two_mistakes(dtype, seed, with_weights);
  const std::string first = "1_" + made.one.stage, second = "3_" + made.two.stage;
  SCOPED_TRACE(fmt::format("{} and {} in {}, seed {}: {}", made.one.code, made.two.code,
                           name_of(dtype), seed, describe(made.insight, made.sites)));
  ASSERT_TRUE(made.insight.first);
  EXPECT_EQ(made.sites[made.insight.first->pair].a.name, first);
  EXPECT_EQ(code_at(made, first), made.one.code);
  bool found = false;
  for (const Divergence& next : made.insight.next) {
    const Site& site = made.sites[next.pair];
    // RoPE that is wrong is so for keys, too.
    const bool of_keys = site.stage == "key_final";
    EXPECT_TRUE(site.a.name == second || of_keys) << "carried: " << site.a.name;
    found = found || site.a.name == second;
  }
  // What is no number hides all that comes behind it.
  if (made.one.code == "nonfinite" || !(with_weights || always_told(made.two))) return;
  EXPECT_TRUE(found);
  EXPECT_EQ(code_at(made, second), made.two.code);
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
    const auto a = without_stream(model.run(DType::f32, false, {}));
    const auto b = without_stream(model.run(dtype, true, {one, two}));
    const std::vector<Site> sites = sites_of(a, DType::f32, b, dtype);
    const Insight insight = diagnose(sites, {});
    SCOPED_TRACE(fmt::format("{}: {}", name_of(dtype), describe(insight, sites)));
    ASSERT_EQ(insight.next.size(), 1U);
    EXPECT_EQ(sites[insight.next[0].pair].a.name, "2_post_ln_pre_attn");
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
    EXPECT_EQ(sites[insight.first->pair].a.name, "0_post_attn_pre_resid");
    ASSERT_EQ(insight.next.size(), 1U);
    EXPECT_EQ(sites[insight.next[0].pair].a.name, "2_post_attn");
  }
}

// What is dumped, and with what it is looked at.
struct Looked {
  ToyShape shape = {};
  std::string_view hidden = "output";  // A stage that is not dumped.
  bool with_weights = false;
  std::vector<ToyMistakes> by_both = {};
};

// The next divergences behind a mask that is missing in layer 0.
std::string next_behind(std::vector<ToyMistakes> mistakes, DType dtype, const Looked& at = {}) {
  ToyModel model(at.shape, 6);
  ToyMistakes one;
  one.layer = 0;
  one.masked = false;
  mistakes.push_back(one);
  auto a = model.run(DType::f32, false, at.by_both), b = model.run(dtype, true, mistakes);
  const auto is_hidden = [&](const ToyModel::Dump& dump) { return dump.stage == at.hidden; };
  std::erase_if(a, is_hidden);
  std::erase_if(b, is_hidden);
  const std::vector<Site> sites = sites_of(a, DType::f32, b, dtype);
  DiagnoseOptions options;
  if (at.with_weights) options.weights = Weights(model.weights());
  const Insight insight = diagnose(sites, options);
  std::string text;
  for (const Divergence& next : insight.next) {
    const auto found = std::ranges::find(insight.findings, next.pair, &Finding::pair);
    text += (text.empty() ? "" : ", ") + sites[next.pair].a.name + " " +
            (found == insight.findings.end() ? "" : found->code);
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
    EXPECT_EQ(next_behind({two}, dtype), "2_key region");
}

// Zeros that a has here and there do not hide the one token of them.
TEST(Carried, FindsATokenThatIsLeftEmptyAmongZeros) {
  const ToyShape shape;
  const uint64_t width = shape.kv_heads * shape.dim;
  ToyMistakes both, two;
  both.layer = two.layer = 2;
  both.after["key"] = each(width, [](double x, auto, uint64_t i) { return i == 0 ? 0 : x; });
  two.after["key"] =
      each(width, [](double x, uint64_t row, uint64_t i) { return row == 11 || i == 0 ? 0 : x; });
  for (const DType dtype : {DType::f32, DType::bf16})
    EXPECT_EQ(next_behind({two}, dtype, {.by_both = {both}}), "2_key region");
}

TEST(Carried, FindsTokensThatANormLeavesEmpty) {
  const ToyShape shape;
  ToyMistakes two;
  two.layer = 2;
  two.after["post_ln_pre_attn"] = each(
      shape.width(), [&](double x, uint64_t row, auto) { return row + 3 >= shape.tokens ? 0 : x; });
  for (const DType dtype : {DType::f32, DType::bf16})
    EXPECT_EQ(next_behind({two}, dtype), "2_post_ln_pre_attn region");
}

TEST(Carried, FindsANormThatIsTurnedRound) {
  ToyMistakes two;
  two.layer = 2;
  two.after["post_ln_pre_attn"] = each(ToyShape{}.width(), [](double x, auto, auto) { return -x; });
  for (const DType dtype : {DType::f32, DType::bf16})
    EXPECT_EQ(next_behind({two}, dtype), "2_post_ln_pre_attn scale");
}

// The weights of norms tell what their tokens must be, whatever comes in.
TEST(Carried, FindsMistakesOfNormsByTheirWeights) {
  ToyMistakes eps, weight, swapped;
  eps.layer = weight.layer = swapped.layer = 2;
  eps.epsilon = 0.1;
  weight.weighted = false;
  const uint64_t width = ToyShape{}.width();
  swapped.after["pre_mlp"] = [&](Values& values) {
    const auto row = [&](uint64_t i) { return values.begin() + std::ptrdiff_t(i * width); };
    std::swap_ranges(row(1), row(2), row(5));
  };
  ToyShape few;
  few.tokens = 7;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    EXPECT_EQ(next_behind({eps}, dtype, {.shape = few, .with_weights = true}),
              "2_post_ln_pre_attn norm_epsilon");
    EXPECT_EQ(next_behind({weight}, dtype, {.shape = few, .with_weights = true}),
              "2_post_ln_pre_attn norm_weight");
    EXPECT_EQ(next_behind({swapped}, dtype, {.shape = few, .with_weights = true}),
              "2_pre_mlp region");
  }
}

// Of the 17 tokens that there are, fewer are computed again.
TEST(Carried, NamesASumThatIsLeftOut) {
  Values mlp;
  ToyMistakes two;
  two.layer = 2;
  two.after["post_mlp"] = [&](Values& values) { mlp = values; };
  two.after["output"] = [&](Values& values) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] -= mlp[i];
  };
  for (const DType dtype : {DType::f32, DType::bf16})
    EXPECT_EQ(next_behind({two}, dtype, {.hidden = ""}), "2_output residual_missing");
}

// What b holds twice is wrong once, however far it is from a.
TEST(Carried, FindsWhatIsLeftFromTheLayerBefore) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Values kept;
    ToyMistakes before, stale;
    before.layer = 1, stale.layer = 2;
    before.after["key"] = [&](Values& values) { kept = values; };
    before.after["output"] = [](Values& values) { std::ranges::reverse(values); };
    stale.after["key"] = [&](Values& values) { values = kept; };
    EXPECT_EQ(next_behind({before, stale}, dtype),
              "2_post_ln_pre_attn operator, 2_key other_tensor");
  }
}

// Without the stream a norm is not computed again, but its size is its own.
TEST(Carried, FindsANormOfAnotherSize) {
  ToyMistakes two;
  two.layer = 2;
  two.plus = 1;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
    EXPECT_EQ(next_behind({two}, dtype), "2_post_ln_pre_attn norm_weight");
}

// A step of 20 tokens and what goes into it, which is off by noise of this size.
class OneStep {
 public:
  OneStep(std::string input, std::string stage, double noise)
      : noise_(noise),
        in_a_(random_values()),
        in_b_(noisy(in_a_)),
        a_(random_values()),
        b_(noisy(a_)),
        names_{std::move(input), std::move(stage)} {}

  Values& in_b() { return in_b_; }
  Values& b() { return b_; }

  // Whether the first mistake of this kind that is found was made at the step.
  bool made(const Diagnosis& diagnosis) const {
    const Shape shape = {kTokens, kWidth};
    tensordiff::Run run =
        make_run(sites_of({{names_[0], 0, shape, in_a_}, {names_[1], 0, shape, a_}}, DType::f32,
                          {{names_[0], 0, shape, in_b_}, {names_[1], 0, shape, b_}}, DType::f32),
                 {});
    judge(run);
    std::optional<Case> it = values_of(run, run.sites[1]);
    it->carried = carried_into(run, run.sites[1]);
    const std::optional<Explanation> found = diagnosis.examine(*it);
    return found && made_there(*it, diagnosis, *found);
  }

  static constexpr uint64_t kTokens = 20, kWidth = 32;

 private:
  Values random_values() {
    Values values;
    for (uint64_t i = 0; i < kTokens * kWidth; ++i) values.push_back(normal_(random_));
    return values;
  }
  Values noisy(Values values) {
    for (double& value : values) value += noise_ * normal_(random_);
    return values;
  }

  std::mt19937 random_{3};
  std::normal_distribution<double> normal_;
  double noise_;
  Values in_a_, in_b_, a_, b_;
  std::string names_[2];
};

// They alone are off by more than what comes in.
TEST(MadeThere, TwoTokensThatChangedPlaces) {
  OneStep step("post_ln_pre_attn", "key", 0.2);
  EXPECT_FALSE(step.made(diagnoses::row_permutation));
  const auto row = [&](uint64_t i) {
    return step.b().begin() + std::ptrdiff_t(i * OneStep::kWidth);
  };
  std::swap_ranges(row(3), row(4), row(9));
  EXPECT_TRUE(step.made(diagnoses::row_permutation));
}

// What comes in may be an offset, too, but is a smaller one.
TEST(MadeThere, AnOffsetBehindASmallerOne) {
  const auto offset = [](double size) {
    return each(OneStep::kWidth,
                [size](double x, auto, uint64_t i) { return x + size * std::cos(double(i)); });
  };
  for (const double size : {0.1, 0.5}) {
    OneStep step("post_ln_pre_attn", "value", 0.02);
    offset(0.1)(step.in_b());
    offset(size)(step.b());
    EXPECT_EQ(step.made(diagnoses::offset), size > 0.3) << size;
  }
}

// What differs may come out of attention as one vector for all tokens, unless the heads are there.
TEST(MadeThere, AnOffsetBehindAttentionThatIsNotThere) {
  for (const char* input : {"value", "post_attn"}) {
    OneStep step(input, "post_attn_pre_resid", 0.02);
    each(OneStep::kWidth, [](double x, uint64_t row, auto) {
      return x + 0.1 * std::sin(9.0 * static_cast<double>(row));
    })(step.in_b());
    each(OneStep::kWidth,
         [](double x, auto, uint64_t i) { return x + 0.5 * std::cos(double(i)); })(step.b());
    EXPECT_EQ(step.made(diagnoses::offset), std::string_view(input) == "post_attn") << input;
  }
}

// No error that comes in turns a norm round, unless it turned round itself.
TEST(MadeThere, ANormThatIsTurnedRound) {
  for (const double of_input : {1, -1}) {
    OneStep step("post_attn_pre_resid", "pre_mlp", 0.5);
    for (double& value : step.in_b()) value *= of_input;
    for (double& value : step.b()) value *= -1;
    EXPECT_EQ(step.made(diagnoses::scale), of_input > 0) << of_input;
  }
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
    EXPECT_EQ(told.made_here, site.a.name == "2_post_attn") << site.a.name;
    if (told.finding) {
      EXPECT_EQ(told.finding->code, "attention_mask");
    }
    ++carried;
  }
  EXPECT_GT(carried, 10U);
}

}  // namespace
}  // namespace tensordiff
