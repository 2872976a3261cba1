#include "diagnose/replay/norm_gain.h"

#include <gtest/gtest.h>

#include "diagnose/toys/toy_model.h"

namespace tensordiff {
namespace {

const Values kWeight = {0.5, 2, -1};

Tensor stored(std::string name, const Values& values) {
  return {std::move(name), view_of({values.size()}, values, DType::f32), ""};
}

// A norm of three features, with these weights.
tensordiff::Run run_with(std::vector<Tensor> weights, std::string stage) {
  const std::vector<ToyModel::Dump> dump = {{std::move(stage), 4, {2, 3}, {1, 2, 3, 4, 5, 6}}};
  tensordiff::Run run = make_run(sites_of(dump, DType::f32, dump, DType::f32), {});
  Catalog catalog;
  catalog.tensors = std::move(weights);
  read_places(catalog);
  run.weights = Weights(catalog);
  return run;
}

TEST(NormGain, IsFoundByLayerAndRole) {
  const std::vector<Tensor> weights = {
      stored("model.layers.4.input_layernorm.weight", kWeight),
      stored("model.layers.4.input_layernorm.bias", {1, 2, 3}),
      stored("model.layers.4.post_attention_layernorm.weight", {7, 8, 9}),
      stored("model.layers.5.input_layernorm.weight", {7, 7, 7})};
  const tensordiff::Run attention = run_with(weights, "post_ln_pre_attn"),
                        mlp = run_with(weights, "pre_mlp");
  const auto of_attention = stored_gain(attention, attention.sites[0]);
  ASSERT_TRUE(of_attention);
  EXPECT_EQ(of_attention->weight, kWeight);
  EXPECT_EQ(of_attention->bias, (Values{1, 2, 3}));
  const auto of_mlp = stored_gain(mlp, mlp.sites[0]);
  ASSERT_TRUE(of_mlp);
  EXPECT_EQ(of_mlp->weight, (Values{7, 8, 9}));
  EXPECT_EQ(of_mlp->bias, (Values{0, 0, 0}));
}

TEST(NormGain, IsNotKnownWithoutAWeightOfThatSize) {
  for (const Values& other : {Values{}, Values{1, 2}}) {
    const tensordiff::Run run =
        run_with({stored("model.layers.4.input_layernorm.weight", other)}, "post_ln_pre_attn");
    EXPECT_FALSE(stored_gain(run, run.sites[0]));
  }
  const tensordiff::Run query =
      run_with({stored("model.layers.4.input_layernorm.weight", kWeight)}, "query");
  EXPECT_FALSE(stored_gain(query, query.sites[0]));
}

TEST(NormGain, ComesOffAndOnAgain) {
  Matrix unit;
  unit.tokens = 2, unit.features = 3;
  unit.values = {1, -1, 2, 0, 3, 0.5};
  for (const GainWay& way : ways_of_mistakes()) {
    const NormGain gain = in_way({kWeight, {1, 2, 3}}, way);
    EXPECT_EQ(without_gain(with_gain(unit, gain), gain).values.at(1), -1) << way.text;
  }
  EXPECT_EQ(with_gain(unit, in_way({kWeight, {1, 2, 3}}, ways_of_models()[1])).values,
            (Values{2.5, -1, 3, 1, 11, 3}));
}

}  // namespace
}  // namespace tensordiff
