// Each mistake, made in a small transformer of random shape: is it found where it was made, and
// called by its name and by no other?

#include "diagnose/hypotheses/diagnosis.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>

#include "diagnose/toys/toy_mistakes.h"

namespace tensordiff {
namespace {

void expect_found(const ToyExample& example, DType dtype, unsigned seed) {
  std::mt19937 random(seed);
  const ToyShape shape = random_shape(random);
  ToyModel model(shape, seed);
  ToyMistakes mistakes;
  mistakes.layer = below(shape.layers, random);
  example.make(mistakes, shape, random);
  const auto a = model.run(DType::f32, false, {});
  const auto b = model.run(dtype, true, {mistakes});
  const std::vector<Site> sites = sites_of(a, DType::f32, b, dtype);
  const Insight insight = diagnose(sites, {});
  SCOPED_TRACE(fmt::format("{} in {}, layer {}, seed {}: {}", example.code, name_of(dtype),
                           mistakes.layer, seed, describe(insight, sites)));
  // Nothing feeds the very first step, so nothing can be said of it.
  if (mistakes.layer == 0 && example.stage == "post_ln_pre_attn") return;
  ASSERT_TRUE(insight.first.has_value());
  const Site* first = &sites.at(insight.first->pair);
  EXPECT_EQ(first->stage, example.stage);
  EXPECT_EQ(first->layer, static_cast<int64_t>(mistakes.layer));
  EXPECT_TRUE(insight.first->created);
  const auto found = std::ranges::find(insight.findings, first->index, &Finding::pair);
  ASSERT_NE(found, insight.findings.end());
  EXPECT_EQ(found->code, example.code);
  EXPECT_TRUE(found->evidence.has_value());
  // What carries the error is no mistake of its own; RoPE was wrong for the keys of the layer, too.
  for (const Divergence& next : insight.next) {
    EXPECT_EQ(sites[next.pair].layer, first->layer) << sites[next.pair].a.name;
    const auto of_next = std::ranges::find(insight.findings, next.pair, &Finding::pair);
    EXPECT_TRUE(of_next != insight.findings.end() && of_next->code == example.code);
  }
}

TEST(Diagnosis, NamesEveryMistakeInFloat32) {
  for (const ToyExample& example : examples())
    for (unsigned seed = 1; seed <= seeds(); ++seed) expect_found(example, DType::f32, seed);
}

TEST(Diagnosis, NamesEveryMistakeUnderTheNoiseOfFloat16) {
  for (const ToyExample& example : examples())
    for (unsigned seed = 11; seed <= 10 + seeds(); ++seed) expect_found(example, DType::f16, seed);
}

TEST(Diagnosis, NamesEveryMistakeUnderTheNoiseOfBfloat16) {
  for (const ToyExample& example : examples())
    for (unsigned seed = 21; seed <= 20 + seeds(); ++seed) expect_found(example, DType::bf16, seed);
}

// Both q and k of each head with halves in place of pairs: their products are the same.
ToyMistakes in_pairs(uint64_t layer) {
  ToyMistakes same;
  same.layer = layer;
  for (const char* stage : {"query_final", "key_final"})
    same.after[stage] = [dim = ToyShape{}.dim](Values& values) {
      const Values old = values;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const uint64_t at = i % dim;
        values[i] = old[i - at + at / 2 + at % 2 * (dim / 2)];
      }
    };
  return same;
}

TEST(Diagnosis, CallsALayoutThatCancelsAConvention) {
  ToyModel model({}, 5);
  const ToyMistakes same = in_pairs(1);
  const auto a = model.run(DType::f32, false, {});
  const auto b = model.run(DType::f32, true, {same});
  const std::vector<Site> sites = sites_of(a, DType::f32, b, DType::f32);
  const Insight insight = diagnose(sites, {});
  SCOPED_TRACE(describe(insight, sites));
  EXPECT_FALSE(insight.first.has_value());
  ASSERT_EQ(insight.findings.size(), 2U);
  for (const Finding& finding : insight.findings) {
    EXPECT_EQ(finding.code, "interleave");
    EXPECT_TRUE(finding.convention);
  }
}

// Attention that sees all tokens alike hardly shows that heads are swapped; but where the layer
// before agrees to the bit, a mere layout would, too.
TEST(Diagnosis, CallsALayoutAMistakeWhereNothingElseIsRounded) {
  const ToyShape shape;
  ToyModel model(shape, 5);
  const auto a = model.run(DType::f32, false, {});
  const auto right = std::ranges::find_if(
      a, [](const auto& dump) { return dump.layer == 1 && dump.stage == "post_attn"; });
  for (const double off : {0.0, 1e-6}) {
    ToyMistakes wrong;
    wrong.after["query"] = moved(shape.width(), [&](uint64_t row, uint64_t i) {
      return row * shape.width() + (i < 2 * shape.dim ? (i + shape.dim) % (2 * shape.dim) : i);
    });
    wrong.after["post_attn"] = [&](Values& values) {
      values = right->values;
      values[3] *= 1 + off;
    };
    const std::vector<Site> sites =
        sites_of(a, DType::f32, model.run(DType::f32, false, {wrong}), DType::f32);
    const Insight insight = diagnose(sites, {});
    SCOPED_TRACE(describe(insight, sites));
    EXPECT_EQ(insight.first.has_value(), off != 0);
    ASSERT_FALSE(insight.findings.empty());
    EXPECT_EQ(insight.findings[0].code, "block_permutation");
  }
}

// Where attention is wrong in one layer, the layout before it is the convention of the others.
TEST(Diagnosis, BlamesNoConventionForAMistakeBehindIt) {
  ToyModel model({}, 5);
  std::vector<ToyMistakes> made = {in_pairs(0), in_pairs(1), in_pairs(2)};
  made[1].after["post_attn"] = each(ToyShape{}.width(), [](double x, auto, auto) { return 2 * x; });
  const auto a = model.run(DType::f32, false, {}), b = model.run(DType::f32, true, made);
  const std::vector<Site> sites = sites_of(a, DType::f32, b, DType::f32);
  const Insight insight = diagnose(sites, {});
  SCOPED_TRACE(describe(insight, sites));
  ASSERT_TRUE(insight.first.has_value());
  EXPECT_EQ(sites[insight.first->pair].a.name, "1_post_attn");
}

// What rounding leaves over many layers exceeds the tolerance somewhere, and is said to be noise.
TEST(Diagnosis, CallsRoundingRounding) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (unsigned seed = 1; seed <= 3; ++seed) {
      std::mt19937 random(seed);
      ToyShape shape = random_shape(random);
      shape.layers = 6;
      ToyModel model(shape, seed);
      const auto a = model.run(DType::f32, false, {}), b = model.run(dtype, true, {});
      const Insight insight = diagnose(sites_of(a, DType::f32, b, dtype), {});
      EXPECT_FALSE(insight.first);
      ASSERT_EQ(insight.findings.size(), 1U) << name_of(dtype) << " seed " << seed;
      EXPECT_EQ(insight.findings[0].code, "precision_noise");
    }
  }
}

// Names that say nothing: the order is all there is to go by.
// Where nothing is rounded otherwise, one factor for all leaves as little as one for each feature.
TEST(Diagnosis, CallsOneFactorOfANormAFactor) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
    for (const double factor : {-1.0, 2.0}) {
      ToyModel model({}, 6);
      ToyMistakes wrong;
      wrong.after["post_ln_pre_attn"] = [=](Values& values) {
        for (double& value : values) value *= factor;
      };
      const std::vector<Site> sites =
          sites_of(model.run(dtype, false, {}), dtype, model.run(dtype, false, {wrong}), dtype);
      const Insight insight = diagnose(sites, {});
      ASSERT_FALSE(insight.findings.empty());
      EXPECT_EQ(insight.findings[0].code, "scale") << describe(insight, sites);
    }
}

TEST(Diagnosis, FollowsAnOrderThatIsGiven) {
  const auto site = [](std::string name, double factor) {
    Values a, b;
    for (int i = 0; i < 64; ++i) a.push_back(std::sin(i * 1.7)), b.push_back(factor * a.back());
    Site made;
    made.a.name = made.b.name = std::move(name);
    made.views.a = view_of({8, 8}, a, DType::f32);
    made.views.b = view_of({8, 8}, b, DType::f32);
    made.comparison = compare(made.views).value();
    return made;
  };
  std::vector<Site> sites = {site("left", 3), site("middle", 3), site("right", 1)};
  for (std::size_t i = 0; i < sites.size(); ++i) sites[i].index = sites[i].capture = i;
  DiagnoseOptions options;
  options.order = {"right", "middle", "left"};
  const Insight insight = diagnose(sites, options);
  ASSERT_TRUE(insight.first);
  EXPECT_EQ(insight.first->pair, 1U);
  EXPECT_TRUE(insight.first->created);
}

TEST(Diagnosis, KnowsAnotherTensor) {
  unsigned seed = 6;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    std::mt19937 random(++seed);
    ToyModel model(random_shape(random), seed);
    const auto a = model.run(DType::f32, false, {});
    const auto wanted = std::ranges::find_if(
        a, [](const auto& dump) { return dump.layer == 0 && dump.stage == "post_mlp"; });
    ToyMistakes stale;
    stale.layer = 2;
    stale.after["post_mlp"] = [&](Values& values) { values = wanted->values; };
    const auto b = model.run(dtype, true, {stale});
    const std::vector<Site> sites = sites_of(a, DType::f32, b, dtype);
    const Insight insight = diagnose(sites, {});
    SCOPED_TRACE(describe(insight, sites));
    ASSERT_TRUE(insight.first);
    EXPECT_EQ(sites[insight.first->pair].a.name, "2_post_mlp");
    EXPECT_EQ(insight.findings.at(0).code, "other_tensor");
    EXPECT_EQ(std::get<std::string>(insight.findings[0].parameters[0].value), "0_post_mlp");
  }
}

// Of many tokens only a few are computed again: two that changed places must be among them.
TEST(Diagnosis, SeesTwoTokensOfManyThatChangedPlaces) {
  ToyShape shape;
  shape.tokens = 61;
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const uint64_t token : {1, 17, 43, 59}) {
      ToyModel model(shape, 4);
      ToyMistakes swapped;
      swapped.after["post_attn"] = moved(shape.width(), [&](uint64_t row, uint64_t i) {
        const uint64_t from = row == token ? token + 1 : row == token + 1 ? token : row;
        return from * shape.width() + i;
      });
      const auto a = model.run(DType::f32, false, {}), b = model.run(dtype, true, {swapped});
      const std::vector<Site> sites = sites_of(a, DType::f32, b, dtype);
      const Insight insight = diagnose(sites, {});
      ASSERT_TRUE(insight.first) << name_of(dtype) << " " << token;
      EXPECT_EQ(sites[insight.first->pair].a.name, "1_post_attn");
      EXPECT_EQ(insight.findings.at(0).code, "row_permutation");
    }
}

// A model without RoPE whose queries are those of the layer before: they are no rotation of what
// goes in, and are not called one.
TEST(Diagnosis, CallsNothingARotationThatIsNone) {
  const ToyShape shape;
  Values flat, kept;
  const auto unturned = [&](uint64_t layer, bool stale) {
    ToyMistakes made;
    made.layer = layer;
    made.after["query"] = [&](Values& values) { flat = values; };
    made.after["query_final"] = [&, stale](Values& values) {
      for (uint64_t row = 0; row < shape.tokens; ++row)
        for (uint64_t i = 0; i < shape.width(); ++i)
          values[(i / shape.dim * shape.tokens + row) * shape.dim + i % shape.dim] =
              flat[row * shape.width() + i];
      if (stale)
        values = kept;
      else
        kept = values;
    };
    return made;
  };
  ToyModel model(shape, 4);
  const auto a = model.run(DType::f32, false, {unturned(0, false), unturned(1, false)});
  const auto b = model.run(DType::f32, true, {unturned(0, false), unturned(1, true)});
  const std::vector<Site> sites = sites_of(a, DType::f32, b, DType::f32);
  const Insight insight = diagnose(sites, {});
  ASSERT_TRUE(insight.first);
  EXPECT_EQ(sites[insight.first->pair].a.name, "1_query_final");
  EXPECT_EQ(insight.findings.at(0).code, "other_tensor");
}

TEST(Diagnosis, KnowsQuantizationOfActivations) {
  unsigned seed = 30;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    // 8 bits are finer than what bf16 leaves of them.
    for (const double levels : {7.0, 127.0}) {
      if (levels > 100 && dtype != DType::f32) continue;
      std::mt19937 random(++seed);
      const ToyShape shape = random_shape(random);
      ToyModel model(shape, seed);
      ToyMistakes coarse;
      coarse.after["post_mlp"] = [&](Values& values) {
        for (std::size_t at = 0; at < values.size(); at += shape.width()) {
          const std::span<double> row = std::span(values).subspan(at, shape.width());
          double most = 0;
          for (const double value : row) most = std::max(most, std::abs(value));
          for (double& value : row) value = std::nearbyint(value / most * levels) * most / levels;
        }
      };
      const std::vector<Site> sites = sites_of(model.run(DType::f32, false, {}), DType::f32,
                                               model.run(dtype, true, {coarse}), dtype);
      const Insight insight = diagnose(sites, {});
      SCOPED_TRACE(fmt::format("{} levels in {}, seed {}: {}", levels, name_of(dtype), seed,
                               describe(insight, sites)));
      ASSERT_TRUE(insight.first);
      EXPECT_EQ(sites[insight.first->pair].a.name, "1_post_mlp");
      EXPECT_EQ(insight.findings.at(0).code, "quantization");
    }
  }
}

TEST(Diagnosis, EveryRowHasAnExample) {
  // These have tests of their own, here, in checkpoint_test.cpp and in softmax_shift_test.cpp.
  std::set<std::string_view> covered = {"cast", "quantization", "other_tensor", "precision_noise",
                                        "softmax_shift"};
  for (const ToyExample& example : examples()) covered.insert(example.code);
  for (const Diagnosis* diagnosis : diagnoses::kAll)
    EXPECT_TRUE(covered.contains(diagnosis->code)) << diagnosis->code;
}

TEST(Diagnosis, RowsAreUniqueAndSayWhatTheyAre) {
  std::set<std::string_view> codes;
  for (const Diagnosis* diagnosis : diagnoses::kAll) {
    EXPECT_TRUE(codes.insert(diagnosis->code).second) << diagnosis->code;
    EXPECT_TRUE(diagnosis->question.ends_with("?")) << diagnosis->code;
    EXPECT_FALSE(diagnosis->explains.empty()) << diagnosis->code;
  }
}

}  // namespace
}  // namespace tensordiff
