// What names mean beside the other names of their side.

#include "match/meaning.h"

#include <numeric>

#include "match/roles.h"
#include "match/test_catalogs.h"

namespace tensordiff {
namespace {

// The role of the first name among all of them; "" where it is left open.
std::string role_among(const Names& names) {
  std::vector<std::size_t> all(names.size());
  std::iota(all.begin(), all.end(), 0);
  for (const auto& [meaning, tensor] : meanings_of(names, all).tensors)
    if (tensor == 0)
      return meaning.role + (meaning.parameter.empty() ? "" : "." + meaning.parameter);
  return "";
}

TEST(Roles, AreFoundByTheirSpelling) {
  EXPECT_EQ(role_in_layer("self.attn.k.proj").role, "k");
  EXPECT_EQ(role_in_layer("attention.self.key").role, "k");
  EXPECT_EQ(role_outside("wte").role, "tokens");
  EXPECT_EQ(role_outside("self.attn.k.proj").role, "");
}

TEST(Meanings, OfANormDependOnWhichOthersThereAre) {
  const std::string norm = "model.layers.0.post_attention_layernorm.weight";
  EXPECT_EQ(role_among({norm, "model.layers.0.input_layernorm.weight"}), "mlp_norm.weight");
  EXPECT_EQ(role_among({norm, "model.layers.0.input_layernorm.weight",
                        "model.layers.0.pre_feedforward_layernorm.weight"}),
            "post_attn_norm.weight");
  const std::string after = "bert.encoder.layer.0.attention.output.LayerNorm.weight";
  EXPECT_EQ(role_among({after, "bert.encoder.layer.0.output.LayerNorm.weight"}),
            "attn_norm.weight");
  EXPECT_EQ(role_among({after, "bert.encoder.layer.0.ln_1.weight"}), "post_attn_norm.weight");
}

TEST(Meanings, OfAGateDependOnExpertsAndOnWhatStandsBesideIt) {
  const std::string gate = "layers.0.mlp.gate.weight";
  EXPECT_EQ(role_among({gate, "layers.0.mlp.up.weight"}), "gate.weight");
  EXPECT_EQ(role_among({gate, "layers.0.mlp.experts.0.up_proj.weight"}), "router.weight");
  EXPECT_EQ(role_among({gate, "layers.0.mlp.fc.weight"}), "half.gate.weight");
  EXPECT_EQ(role_among({"layers.0.mlp.fc.weight", gate}), "half.fc.weight");
  EXPECT_EQ(role_among({"layers.0.mlp.fc.weight"}), "up.weight");
}

TEST(Meanings, WithoutAParameterAreWeightsAmongWeights) {
  EXPECT_EQ(role_among({"cls_token", "norm.weight", "norm.bias"}), "class.weight");
  EXPECT_EQ(role_among({"cls_token", "norm.scale", "blocks.0.attn"}), "class");
  EXPECT_EQ(role_among({"cls_token", "blocks.0.attn"}), "class");
}

TEST(Meanings, TellTheNormsOfT5Apart) {
  EXPECT_EQ(role_among({"decoder.block.0.layer.1.layer_norm.weight"}), "cross_norm.weight");
  EXPECT_EQ(role_among({"encoder.block.0.layer.1.layer_norm.weight"}), "mlp_norm.weight");
}

// One name, as each framework writes it.
TEST(ReadName, KnowsTheFormsThatFrameworksGiveIt) {
  const std::vector<Names> groups = {
      {"model.layers.3.self_attn.q_proj.weight", "blocks.3.attn.W_Q",
       "model.layers.3.self_attn.q_proj.base_layer.weight",
       "layers.3.self_attn.q_proj.linear.weight",
       "layers.3._fsdp_wrapped_module.self_attn.q_proj.weight",
       "target/decoder/layers_3/self_attention/query/kernel", "transformer/layer_3/attn/q_einsum/w",
       "Transformer/encoderblock_3/MultiHeadDotProductAttention_1/query/kernel"},
      {"model.layers.3.input_layernorm", "blocks.3.ln1.hook_normalized", "attn_norm-3"},
      {"model.layers.3.self_attn.k_proj.bias", "blocks.3.attn._b_K"},
      {"h.3.ln_1.weight", "model/h3/ln_1/g", "blocks.3.ln1.w",
       "decoder.layers.3.self_attention.linear_qkv.layer_norm_weight"},
      {"h.3.ln_1.bias", "model/h3/ln_1/b", "blocks.3.ln1.b"},
      {"wte.weight", "token_embedding/embeddings", "embed.W_E", "model.embed_tokens.embedding"},
      {"lm_head.weight", "unembed.W_U", "params/decoder/logits_dense/kernel"},
      {"decoder.layers.0.mlp.experts.local_experts.2.linear_fc1.weight",
       "decoder.layers.0.mlp.experts.linear_fc1.weight2"},
  };
  for (const Names& group : groups) {
    for (const std::string& name : group) {
      ASSERT_TRUE(read_name(name)) << name;
      EXPECT_EQ(read_name(name)->meaning, read_name(group[0])->meaning) << name;
    }
  }
}

TEST(ReadName, KnowsThatAllLayersLieInOneTensor) {
  const auto read = read_name("params.decoder.layers.self_attention.query.kernel");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->meaning.layer, CanonicalName::kAll);
  EXPECT_EQ(read->meaning.role, "q");
  EXPECT_FALSE(canonical_name("params.decoder.layers.self_attention.query.kernel"));
  EXPECT_FALSE(read_name("layers.frobnicate.weight"));
}

}  // namespace
}  // namespace tensordiff
