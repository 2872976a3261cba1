// Attention whose queries and keys were dumped before their positions came in.

#include "diagnose/attention_forms.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "diagnose/toy_mistakes.h"

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
      EXPECT_EQ(sites[insight.first->pair].name_a, "1_post_attn");
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
    const auto site = std::ranges::find(run.sites, Role::attention, &Site::role);
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

}  // namespace
}  // namespace tensordiff
