// What names mean beside the others of their file.

#include <gtest/gtest.h>

#include "naming/naming.h"

namespace tensordiff {
namespace {

using Names = std::vector<std::string>;

Place first_of(const Names& names) { return read_places(names)[0]; }

TEST(Dialect, TellsWhichNormStandsBehindAttention) {
  const std::string norm = "model.layers.0.post_attention_layernorm.weight";
  EXPECT_EQ(first_of({norm}).step, Role::mlp_norm);
  EXPECT_EQ(first_of({norm, "model.layers.0.pre_feedforward_layernorm.weight"}).step,
            Role::post_attention_norm);
  EXPECT_EQ(first_of({norm, "model.layers.0.post_feedforward_layernorm.weight"}).step,
            Role::post_attention_norm);
  // GLM-4 has a norm behind attention, one before the MLP and one behind it.
  const std::string self = "model.layers.0.post_self_attn_layernorm.weight";
  const std::string mlp = "model.layers.0.post_mlp_layernorm.weight";
  EXPECT_EQ(first_of({norm, self, mlp}).step, Role::mlp_norm);
  EXPECT_EQ(first_of({self, norm, mlp}).step, Role::post_attention_norm);
}

TEST(Dialect, TellsARouterFromTheGateOfAnMlp) {
  const std::string gate = "layers.0.mlp.gate.weight";
  EXPECT_EQ(first_of({gate}).step, Role::gate);
  EXPECT_EQ(first_of({gate, "layers.0.mlp.experts.0.up_proj.weight"}).step, Role::router);
}

TEST(Dialect, TellsTheNormsOfT5Apart) {
  EXPECT_EQ(first_of({"decoder.block.0.layer.1.layer_norm.weight"}).step, Role::cross_norm);
  EXPECT_EQ(first_of({"encoder.block.0.layer.1.layer_norm.weight"}).step, Role::mlp_norm);
}

// PyTorch's decoder layers have three norms, of which the second is that of cross attention.
TEST(Dialect, TellsTheSecondOfThreeNormsByTheThird) {
  const std::string second = "transformer.decoder.layers.0.norm2.weight";
  EXPECT_EQ(first_of({second}).step, Role::mlp_norm);
  EXPECT_EQ(first_of({second, "transformer.decoder.layers.0.norm3.weight"}).step, Role::cross_norm);
  EXPECT_EQ(first_of({second, "transformer.encoder.layers.0.norm3.weight"}).step, Role::mlp_norm);
  EXPECT_EQ(first_of({"decoder.layers.0.norm3.weight"}).step, Role::mlp_norm);
  EXPECT_EQ(
      first_of({"decoder.layers.0.layer_norm2.weight", "decoder.layers.0.layer_norm3.bias"}).step,
      Role::cross_norm);
}

TEST(Dialect, TellsTheNormsOfFalconInGgufApart) {
  EXPECT_EQ(first_of({"blk.0.attn_norm.weight"}).step, Role::attention_norm);
  EXPECT_EQ(first_of({"blk.0.attn_norm.weight", "blk.0.attn_norm_2.weight"}).step, Role::mlp_norm);
  EXPECT_EQ(first_of({"blk.0.attn_norm_2.weight"}).step, Role::attention_norm);
}

TEST(Dialect, TakesNamesWithoutAParameterForWeightsAmongWeights) {
  EXPECT_EQ(first_of({"cls_token", "norm.weight", "norm.bias"}).parameter, Param::weight);
  EXPECT_EQ(first_of({"cls_token", "blocks.0.attn"}).parameter, Param::none);
}

TEST(Places, AreReadForACatalogOnce) {
  Catalog catalog;
  catalog.tensors.resize(2);
  catalog.tensors[0].name = "blk.3.attn_q.weight";
  catalog.tensors[1].name = "norm.weight";
  read_missing_places(catalog);
  EXPECT_EQ(catalog.tensors[0].place.step, Role::query);
  catalog.tensors[0].name = "blk.3.attn_k.weight";
  read_missing_places(catalog);
  EXPECT_EQ(catalog.tensors[0].place.step, Role::query);
  read_places(catalog);
  EXPECT_EQ(catalog.tensors[0].place.step, Role::key);
  EXPECT_EQ(catalog.tensors[1].place.step, Role::final_norm);
}

}  // namespace
}  // namespace tensordiff
