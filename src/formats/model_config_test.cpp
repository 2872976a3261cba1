#include "formats/model_config.h"

#include <gtest/gtest.h>

namespace tensordiff {
namespace {

TEST(ModelConfig, ReadsAConfigOfALlama) {
  const ModelConfig config = parse_model_config(R"({
      "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
      "rope_theta": 500000.0, "rms_norm_eps": 1e-05, "hidden_act": "silu",
      "sliding_window": null, "layer_types": ["full_attention"]})")
                                 .value();
  EXPECT_EQ(config.heads, 32U);
  EXPECT_EQ(config.kv_heads, 8U);
  EXPECT_EQ(config.head_dim, 128U);
  EXPECT_EQ(config.rope_theta, 500000);
  EXPECT_EQ(config.norm_epsilon, 1e-5);
  EXPECT_EQ(config.activation, "silu");
  EXPECT_FALSE(config.window);
}

TEST(ModelConfig, KnowsTheOtherSpellings) {
  const ModelConfig gpt2 = parse_model_config(
                               R"({"n_embd": 768, "n_head": 12, "layer_norm_epsilon": 1e-5,
          "activation_function": "gelu_new"})")
                               .value();
  EXPECT_EQ(gpt2.head_dim, 64U);
  EXPECT_EQ(gpt2.activation, "gelu_new");
  const ModelConfig gemma =
      parse_model_config(
          R"({"text_config": {"num_attention_heads": 8, "head_dim": 256, "hidden_size": 2304,
          "query_pre_attn_scalar": 256, "attn_logit_softcapping": 50.0, "sliding_window": 4096,
          "rope_parameters": {"rope_theta": 10000}}, "vision_config": {}})")
          .value();
  EXPECT_EQ(gemma.head_dim, 256U);
  EXPECT_EQ(gemma.score_scale, 1.0 / 16);
  EXPECT_EQ(gemma.score_cap, 50);
  EXPECT_EQ(gemma.window, 4096U);
  EXPECT_EQ(gemma.rope_theta, 10000);
}

TEST(ModelConfig, SaysWhatIsWrong) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"[1]", "a configuration is a JSON object"},
      {R"({"n_head": 0})", "'num_attention_heads' is not a size"},
      {R"({"head_dim": -4})", "'head_dim' is not a size"},
      {R"({"head_dim": 1e30})", "'head_dim' is not a size"},
      {R"({"rms_norm_eps": "small"})", "'rms_norm_eps' is not a number above 0"},
      {R"({"rope_theta": 0})", "'rope_theta' is not a number above 0"},
  };
  for (const auto& [text, message] : cases) {
    const Result<ModelConfig> config = parse_model_config(text);
    ASSERT_FALSE(config.ok()) << text;
    EXPECT_EQ(config.error().message(), message);
  }
  EXPECT_FALSE(parse_model_config("{").ok());
}

ModelConfig config_of(std::vector<Metadata> metadata) {
  Catalog catalog;
  catalog.metadata = std::move(metadata);
  return model_config_of(catalog);
}

TEST(ModelConfig, ReadsTheKeysOfAGguf) {
  const ModelConfig config = config_of({{"general.architecture", "llama"},
                                        {"clip.vision.attention.head_count", "99"},
                                        {"llama.block_count", "2"},
                                        {"llama.embedding_length", "32"},
                                        {"llama.attention.head_count", "4"},
                                        {"llama.attention.head_count_kv", "2"},
                                        {"llama.rope.freq_base", "500000"},
                                        {"llama.attention.layer_norm_rms_epsilon", "1e-05"}});
  EXPECT_EQ(config.layers, 2U);
  EXPECT_EQ(config.heads, 4U);
  EXPECT_EQ(config.head_dim, 8U);
  EXPECT_EQ(config.rope_theta, 500000);
  EXPECT_EQ(config.norm_epsilon, 1e-5);
  EXPECT_EQ(config.kv_elements_per_token(), 2 * 2 * 2 * 8);
}

TEST(ModelConfig, ReadsMetadataOfAFileAndPrefersConfigJson) {
  EXPECT_EQ(config_of({{"num_heads", "12"}}).heads, 12U);
  EXPECT_EQ(config_of({{"n_head", "12"}, {"config.json: n_head", "16"}}).heads, 16U);
  EXPECT_EQ(config_of({{"config.json: text_config.n_head", "8"},
                       {"config.json: vision_config.n_head", "3"},
                       {"config.json: n_head", "5"}})
                .heads,
            8U);
}

TEST(ModelConfig, LeavesOutWhatIsAbsurdInAnInput) {
  const ModelConfig config = config_of({{"num_hidden_layers", "-3"}, {"n_head", "1e300"}});
  EXPECT_FALSE(config.layers);
  EXPECT_FALSE(config.heads);
  EXPECT_FALSE(config.kv_elements_per_token());
}

}  // namespace
}  // namespace tensordiff
