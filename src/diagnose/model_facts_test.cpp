#include "diagnose/model_facts.h"

#include <gtest/gtest.h>

namespace tensordiff {
namespace {

TEST(ModelFacts, ReadsAConfigOfALlama) {
  const ModelFacts facts = parse_model_facts(R"({
      "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
      "rope_theta": 500000.0, "rms_norm_eps": 1e-05, "hidden_act": "silu",
      "sliding_window": null, "layer_types": ["full_attention"]})")
                               .value();
  EXPECT_EQ(facts.heads, 32U);
  EXPECT_EQ(facts.kv_heads, 8U);
  EXPECT_EQ(facts.head_dim, 128U);
  EXPECT_EQ(facts.rope_theta, 500000);
  EXPECT_EQ(facts.norm_epsilon, 1e-5);
  EXPECT_EQ(facts.activation, "silu");
  EXPECT_FALSE(facts.window);
}

TEST(ModelFacts, KnowsTheOtherSpellings) {
  const ModelFacts gpt2 = parse_model_facts(
                              R"({"n_embd": 768, "n_head": 12, "layer_norm_epsilon": 1e-5,
          "activation_function": "gelu_new"})")
                              .value();
  EXPECT_EQ(gpt2.head_dim, 64U);
  EXPECT_EQ(gpt2.activation, "gelu_new");
  const ModelFacts gemma =
      parse_model_facts(
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

TEST(ModelFacts, SaysWhatIsWrong) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"[1]", "a configuration is a JSON object"},
      {R"({"n_head": 0})", "'num_attention_heads' is no size"},
      {R"({"head_dim": -4})", "'head_dim' is no size"},
      {R"({"head_dim": 1e30})", "'head_dim' is no size"},
      {R"({"rms_norm_eps": "small"})", "'rms_norm_eps' is no number above 0"},
      {R"({"rope_theta": 0})", "'rope_theta' is no number above 0"},
  };
  for (const auto& [text, message] : cases) {
    const Result<ModelFacts> facts = parse_model_facts(text);
    ASSERT_FALSE(facts.ok()) << text;
    EXPECT_EQ(facts.error().message(), message);
  }
  EXPECT_FALSE(parse_model_facts("{").ok());
}

}  // namespace
}  // namespace tensordiff
