// Attention whose queries and keys were dumped before their positions came in.

#include "diagnose/replay/attention_forms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "diagnose/toys/toy_mistakes.h"

namespace tensordiff {
namespace {

// A run of which only what projections give was dumped, as hooks on modules do.
std::vector<ToyModel::Dump> without_final(std::vector<ToyModel::Dump> dumps) {
  std::erase_if(dumps, [](const ToyModel::Dump& dump) { return dump.stage.ends_with("_final"); });
  return dumps;
}

TEST(AttentionForms, FindsRopeByItself) {
  struct Wrong {
    std::string_view code;
    std::function<void(ToyMistakes&)> make;
  };
  const Wrong wrongs[] = {{"attention_scale", [](ToyMistakes& m) { m.score = 3; }},
                          {"attention_mask", [](ToyMistakes& m) { m.masked = false; }},
                          {"attention_mask", [](ToyMistakes& m) { m.window = 4; }},
                          {"head_mapping", [](ToyMistakes& m) { m.tiled = true; }}};
  unsigned seed = 0;
  for (const Wrong& wrong : wrongs) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      std::mt19937 random(++seed);
      ToyShape shape = random_shape(random);
      shape.head_norm = false;
      ToyModel model(shape, seed);
      ToyMistakes mistakes;
      wrong.make(mistakes);
      const auto a = without_final(model.run(DType::f32, false, {}));
      const auto b = without_final(model.run(dtype, true, {mistakes}));
      const std::vector<Site> sites = sites_of(a, DType::f32, b, dtype);
      const Insight insight = diagnose(sites, {});
      SCOPED_TRACE(fmt::format("{} seed {}: {}", name_of(dtype), seed, describe(insight, sites)));
      ASSERT_TRUE(insight.first);
      EXPECT_EQ(sites[insight.first->pair].a.name, "1_post_attn");
      ASSERT_FALSE(insight.findings.empty());
      EXPECT_EQ(insight.findings[0].code, wrong.code);
    }
  }
}

TEST(AttentionForms, LearnsTheBaseAndThePairing) {
  ToyShape shape;
  shape.dim = 16, shape.tokens = 24;
  for (const bool neighbours : {false, true}) {
    ToyModel model(shape, 4);
    ToyMistakes form;
    form.base = 23456, form.neighbours = neighbours;
    std::vector<ToyMistakes> forms(shape.layers, form);
    for (uint64_t layer = 0; layer < shape.layers; ++layer) forms[layer].layer = layer;
    const auto dumps = without_final(model.run(DType::f32, false, forms));
    tensordiff::Run run = make_run(sites_of(dumps, DType::f32, dumps, DType::f32), {});
    for (Site& site : run.sites) site.roundoff = std::ldexp(1, -24);
    const auto site = std::ranges::find(run.sites, Role::attention_heads, &Site::role);
    const auto step = attended(run, *site);
    ASSERT_TRUE(step);
    EXPECT_TRUE(step->met()) << step->left;
    const Matrix out = read_matrix(site->views.a, run.extent).value();
    const auto in = [&](Role role) {
      return read_matrix(find_role(run, *site, role)->views.a, run.extent).value();
    };
    const auto learnt =
        learn_form(Case(run, *site, out, out), {in(Role::query), in(Role::key), in(Role::value)});
    ASSERT_TRUE(learnt);
    EXPECT_NEAR(learnt->form.base, 23456, 500);
    EXPECT_EQ(learnt->form.pairing, neighbours ? RopePairing::neighbours : RopePairing::halves);
    EXPECT_EQ(learnt->form.heads, shape.heads);
  }
}

// Queries before RoPE, under a window that no dump tells of.
TEST(AttentionForms, FindsRopeUnderAWindow) {
  unsigned seed = 40;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    std::mt19937 random(++seed);
    ToyShape shape = random_shape(random);
    shape.head_norm = false;
    ToyModel model(shape, seed);
    std::vector<ToyMistakes> right(shape.layers);
    for (uint64_t layer = 0; layer < shape.layers; ++layer)
      right[layer].layer = layer, right[layer].window = 5;
    std::vector<ToyMistakes> wrong = right;
    wrong[1].window = 6;
    const auto a = without_final(model.run(DType::f32, false, right));
    const auto b = without_final(model.run(dtype, true, wrong));
    const std::vector<Site> sites = sites_of(a, DType::f32, b, dtype);
    const Insight insight = diagnose(sites, {});
    SCOPED_TRACE(fmt::format("{} seed {}: {}", name_of(dtype), seed, describe(insight, sites)));
    ASSERT_TRUE(insight.first);
    EXPECT_EQ(sites[insight.first->pair].a.name, "1_post_attn");
    EXPECT_EQ(insight.findings.at(0).code, "attention_mask");
  }
}

// As some trainers have it: [tokens, batch, features], and heads behind that.
std::vector<ToyModel::Dump> sequence_first(std::vector<ToyModel::Dump> dumps) {
  for (ToyModel::Dump& dump : dumps) {
    if (dump.shape.size() == 2) {
      dump.shape = {dump.shape[0], 1, dump.shape[1]};
      continue;
    }
    const uint64_t heads = dump.shape[0], tokens = dump.shape[1], dim = dump.shape[2];
    Values moved;
    for (uint64_t token = 0; token < tokens; ++token)
      for (uint64_t head = 0; head < heads; ++head)
        for (uint64_t i = 0; i < dim; ++i)
          moved.push_back(dump.values[(head * tokens + token) * dim + i]);
    dump.shape = {tokens, 1, heads, dim};
    dump.values = std::move(moved);
  }
  return dumps;
}

TEST(AttentionForms, ReadsTokensThatStandFirst) {
  for (const bool masked : {true, false}) {
    ToyModel model({}, 9);
    ToyMistakes mistakes;
    mistakes.masked = masked;
    mistakes.position = masked ? 2 : 0;
    const auto a = sequence_first(model.run(DType::f32, false, {}));
    const auto b = sequence_first(model.run(DType::f32, true, {mistakes}));
    const std::vector<Site> sites = sites_of(a, DType::f32, b, DType::f32);
    const Insight insight = diagnose(sites, {});
    SCOPED_TRACE(describe(insight, sites));
    ASSERT_FALSE(insight.findings.empty());
    EXPECT_EQ(insight.findings[0].code, masked ? "rope_position" : "attention_mask");
  }
}

// As many heads as tokens: [heads, tokens, dim] and [tokens, heads, dim] have one shape.
TEST(AttentionForms, TellsHeadsFromTokens) {
  for (const uint64_t kv_heads : {3, 6}) {
    ToyShape shape;
    shape.tokens = shape.heads = 6;
    shape.kv_heads = kv_heads;
    ToyModel model(shape, 9);
    ToyMistakes mistakes;
    mistakes.masked = false;
    const auto a = model.run(DType::f32, false, {}), b = model.run(DType::f32, true, {mistakes});
    const std::vector<Site> sites = sites_of(a, DType::f32, b, DType::f32);
    const Insight insight = diagnose(sites, {});
    SCOPED_TRACE(describe(insight, sites));
    ASSERT_FALSE(insight.findings.empty());
    EXPECT_EQ(insight.findings[0].code, "attention_mask") << kv_heads;
  }
}

// The mean of the last so many values: what attention gives where all scores are alike.
Values running_mean(const Values& values, uint64_t width, uint64_t window) {
  Values means(values.size()), sum(width);
  for (uint64_t token = 0; token < values.size() / width; ++token) {
    const double count = static_cast<double>(std::min(token + 1, window));
    for (uint64_t i = 0; i < width; ++i) {
      sum[i] += values[token * width + i];
      if (token >= window) sum[i] -= values[(token - window) * width + i];
      means[token * width + i] = sum[i] / count;
    }
  }
  return means;
}

TEST(AttentionForms, SeesAWindowBeyondTheTokensHeld) {
  const uint64_t width = 1024, tokens = 2 * kValuesMax / width;
  const Shape shape = {1, tokens, width};
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  Values zeros(tokens * width), values(tokens * width);
  for (double& value : values) value = normal(random);
  std::vector<ToyModel::Dump> a, b;
  for (const auto& [side, window] : {std::pair(&a, tokens), std::pair(&b, tokens - 500)}) {
    side->push_back({"query_final", 0, shape, zeros});
    side->push_back({"key_final", 0, shape, values});
    side->push_back({"value_final", 0, shape, values});
    side->push_back({"post_attn", 0, shape, running_mean(values, width, window)});
  }
  const std::vector<Site> sites = sites_of(a, DType::f32, b, DType::f32);
  const Insight insight = diagnose(sites, {});
  SCOPED_TRACE(describe(insight, sites));
  ASSERT_TRUE(insight.first);
  EXPECT_EQ(sites[insight.first->pair].stage, "post_attn");
}

}  // namespace
}  // namespace tensordiff
