// What names tell, in every convention; and that no name can do harm.

#include "naming/naming.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "naming/convention.h"
#include "naming/words.h"

namespace tensordiff {
namespace {

using Names = std::vector<std::string>;

// "layer 3, expert 1, query, weight, encoder"; a "?" where not all words are understood.
std::string told(std::string_view name) {
  const Place place = read_place(name);
  std::string text;
  const auto add = [&](std::string_view word, int32_t number) {
    if (number == Place::kNone) return;
    text += fmt::format("{} {}, ", word,
                        number == Place::kAll      ? "all"
                        : number == Place::kShared ? "shared"
                                                   : std::to_string(number));
  };
  add("rank", place.rank);
  add("pass", place.pass);
  add(place.layer_named || place.layer < 0 ? "layer" : "number", place.layer);
  add("expert", place.expert);
  add("head", place.head);
  text += place.step == Role::other ? "" : name_of(place.step);
  if (place.parameter != Param::none) text += fmt::format(", {}", name_of(place.parameter));
  if (place.tower != Tower::none) text += fmt::format(", {}", name_of(place.tower));
  if (place.call >= 0) text += fmt::format(", call {}", place.call);
  return text + (place.known ? "" : "?");
}

struct Told {
  const Convention& convention;
  std::string_view name, expected;
};

const Told kTold[] = {
    {conventions::hugging_face, "model.layers.3.self_attn.q_proj.weight", "layer 3, query, weight"},
    {conventions::hugging_face, "model.layers.3.mlp.experts.5.gate_proj.weight",
     "layer 3, expert 5, gate, weight"},
    {conventions::hugging_face, "model.layers.3.mlp.shared_experts.up_proj.weight",
     "layer 3, expert shared, up, weight"},
    {conventions::hugging_face, "model.layers.3.mlp.experts.down_proj",
     "layer 3, expert all, MLP output"},
    {conventions::hugging_face, "model.layers.3.mlp.down_proj.weight_scale_inv",
     "layer 3, MLP output, scale"},
    {conventions::hugging_face, "model.embed_tokens.weight", "embedding, weight"},
    {conventions::gpt2, "transformer.h.3.attn.c_attn.weight", "layer 3, fused qkv, weight"},
    {conventions::gpt2, "transformer.h.0.attn", "layer 0, attention module"},
    {conventions::neox, "gpt_neox.layers.3.attention.query_key_value.bias",
     "layer 3, fused qkv, bias"},
    {conventions::bert, "bert.encoder.layer.3.attention.self.key.weight",
     "layer 3, key, weight, encoder"},
    {conventions::bert, "bert.encoder.layer.3.attention.output.LayerNorm.weight",
     "layer 3, norm behind attention, weight, encoder"},
    {conventions::bart, "model.decoder.layers.3.encoder_attn.v_proj.weight",
     "layer 3, cross value, weight, decoder"},
    {conventions::t5, "encoder.block.3.layer.1.DenseReluDense.wo.weight",
     "layer 3, MLP output, weight, encoder"},
    {conventions::vit, "visual.transformer.resblocks.3.attn.in_proj_weight",
     "layer 3, fused qkv, weight, vision"},
    {conventions::timm, "blocks.3.norm1.bias", "layer 3, attention norm, bias"},
    {conventions::timm, "patch_embed.proj.weight", "patches, weight"},
    {conventions::timm, "layers.2.blocks.5.attn.qkv.weight", "layer 2, fused qkv, weight?"},
    {conventions::deepseek, "model.layers.3.self_attn.kv_a_proj_with_mqa.weight",
     "layer 3, kv down, weight"},
    {conventions::mamba, "backbone.layers.3.mixer.A_log", "layer 3, ssm a"},
    {conventions::meta_llama, "layers.3.feed_forward.w2.weight", "layer 3, MLP output, weight"},
    {conventions::litgpt, "transformer.h.3.norm_2.weight", "layer 3, MLP norm, weight"},
    {conventions::megatron, "decoder.layers.3.self_attention.linear_qkv.layer_norm_weight",
     "layer 3, attention norm, weight, decoder"},
    {conventions::megatron, "decoder.layers.3.mlp.experts.linear_fc1.weight2",
     "layer 3, expert 2, up, weight, decoder"},
    {conventions::vllm, "model.layers.3.self_attn.attn", "layer 3, attention"},
    {conventions::tensorrt_llm, "transformer.layers.3.mlp.fc.weight", "layer 3, up, weight"},
    {conventions::gguf, "blk.3.ffn_gate_exps.weight", "layer 3, expert all, gate, weight"},
    {conventions::gguf, "attn_norm-12", "layer 12, attention norm"},
    {conventions::gguf, "Qcur-12", "layer 12, query"},
    {conventions::transformer_lens, "blocks.3.attn.W_Q", "layer 3, query, weight"},
    {conventions::transformer_lens, "blocks.3.attn.hook_z", "layer 3, attention"},
    {conventions::flax, "params/decoder/layers/self_attention/query/kernel",
     "layer all, query, weight, decoder"},
    {conventions::flax, "Transformer/encoderblock_3/MlpBlock_3/Dense_0/kernel",
     "layer 3, up, weight"},
    {conventions::keras, "transformer_layer_3/self_attention_layer/query/kernel:0",
     "layer 3, query, weight"},
    {conventions::keras, "batch_norm/moving_variance", ", running_var?"},
    {conventions::diffusers, "transformer_blocks.3.attn.to_k.weight", "layer 3, key, weight"},
    {conventions::diffusers, "down_blocks.1.attentions.0.transformer_blocks.0.attn2.to_v.weight",
     "layer 1, cross value, weight?"},
    {conventions::captures, "layers.3.attn.heads_out", "layer 3, attention"},
    {conventions::captures, "l3.mlp.hidden", "layer 3, up"},
    {conventions::stages, "12_query_final", "layer 12, final query"},
    {conventions::stages, "rank_1/12_post_attn", "rank 1, layer 12, attention"},
    {conventions::stages, "12_query_1", "layer 12, query?"},
};

TEST(ReadPlace, KnowsTheNamesOfEveryConvention) {
  for (const Told& each : kTold)
    EXPECT_EQ(told(each.name), each.expected) << each.convention.name << ": " << each.name;
}

TEST(ReadPlace, KnowsTheExampleOfEachConvention) {
  for (const Convention* convention : conventions::kAll) {
    EXPECT_TRUE(read_place(convention->example).known) << convention->name;
    const auto has_case = [&](const Told& each) { return &each.convention == convention; };
    EXPECT_TRUE(std::ranges::any_of(kTold, has_case)) << convention->name << " has no case";
  }
}

TEST(ReadPlace, ReadsWhatStandsAroundTheNameOfAModule) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"model.layers.3.mlp.up_proj@2", "layer 3, up, call 2"},
      {"Pass00007/model.layers.3.mlp.up_proj", "pass 7, layer 3, up"},
      {"step_4/model.layers.3.mlp.up_proj", "pass 4, layer 3, up"},
      {"tp_rank_02/model.layers.3.mlp.up_proj", "rank 2, layer 3, up"},
      {"model.layers.3._fsdp_wrapped_module.mlp.up_proj.weight", "layer 3, up, weight"},
      {"layers.3.attn.head.5.scores", "layer 3, head 5, ?"},
      // Numbers that no word calls a layer.
      {"features.3.weight", "number 3, , weight?"},
      {"features.3", "number 3, block output?"},
      {"l1_loss", "?"},
      {"layer1.0.conv1.weight", "layer 1, , weight?"},
      // Known by its last words alone.
      {"net.foo.input_layernorm", "attention norm?"},
      {"net.foo.k_proj", "key?"},
      {"layers.0.frobnicate.weight", "layer 0, , weight?"},
      {"whatever", "?"},
  };
  for (const auto& [name, expected] : cases) EXPECT_EQ(told(name), expected) << name;
}

// One tensor, as each framework names it.
TEST(ReadPlace, IsTheSameForNamesThatMeanTheSame) {
  const std::vector<Names> groups = {
      {"transformer.h.3.attn.c_attn.weight", "blk.3.attn_qkv.weight",
       "decoder.layers.3.self_attention.linear_qkv.weight", "blocks.3.attn.qkv.weight"},
      {"model.layers.3.self_attn.q_proj.weight", "blk.3.attn_q.weight",
       "layers.3.attention.wq.weight", "encoder.layer.3.attention.self.query.weight",
       "layers.3.q.weight"},
      {"model.layers.3.mlp.down_proj.weight", "blk.3.ffn_down.weight",
       "layers.3.feed_forward.w2.weight", "transformer.h.3.mlp.c_proj.weight"},
      {"model.embed_tokens.weight", "transformer.wte.weight", "token_embd.weight",
       "tok_embeddings.weight"},
      {"model.norm.weight", "output_norm.weight", "transformer.ln_f.weight",
       "decoder.final_layernorm.weight", "norm.gamma"},
      {"lm_head.weight", "output.weight", "output_layer.weight"},
      {"transformer.h.0", "layers.0.output", "blk.0.l_out"},
      {"layers.1.block_sparse_moe.experts.3.w1.weight", "layers.1.mlp.experts.3.gate_proj.weight"},
      {"model.layers.1.mlp.shared_experts.up_proj.weight", "blk.1.ffn_up_shexp.weight"},
      {"model.layers.1.self_attn.kv_a_proj_with_mqa.weight", "blk.1.attn_kv_a_mqa.weight"},
      {"backbone.layers.1.mixer.dt_proj.weight", "blk.1.ssm_dt.weight"},
      {"encoder.block.1.layer.0.SelfAttention.q.weight", "enc.blk.1.attn_q.weight"},
      {"vit.embeddings.patch_embeddings.projection.weight", "patch_embed.proj.weight"},
      {"model.layers.3.self_attn.q_proj.weight", "blocks.3.attn.W_Q",
       "model.layers.3.self_attn.q_proj.base_layer.weight",
       "layers.3.self_attn.q_proj.linear.weight",
       "layers.3._fsdp_wrapped_module.self_attn.q_proj.weight",
       "target/decoder/layers_3/self_attention/query/kernel", "transformer/layer_3/attn/q_einsum/w",
       "Transformer/encoderblock_3/MultiHeadDotProductAttention_1/query/kernel"},
      {"model.layers.3.input_layernorm", "blocks.3.ln1.hook_normalized", "attn_norm-3",
       "layer_3_input_layernorm_output"},
      {"model.layers.3.self_attn", "layer_3_self_attention_output"},
      {"layer_3_after_attn", "ffn_inp-3"},
      {"model.layers.3.self_attn.k_proj.bias", "blocks.3.attn._b_K"},
      {"h.3.ln_1.weight", "model/h3/ln_1/g", "blocks.3.ln1.w",
       "decoder.layers.3.self_attention.linear_qkv.layer_norm_weight"},
      {"h.3.ln_1.bias", "model/h3/ln_1/b", "blocks.3.ln1.b"},
      {"wte.weight", "token_embedding/embeddings", "embed.W_E", "model.embed_tokens.embedding"},
      {"lm_head.weight", "unembed.W_U", "params/decoder/logits_dense/kernel"},
      {"decoder.layers.0.mlp.experts.local_experts.2.linear_fc1.weight",
       "decoder.layers.0.mlp.experts.linear_fc1.weight2"},
  };
  const auto meaning = [](const std::string& name) {
    const Place place = read_place(name);
    return std::tuple(place.layer, place.expert, place.step, place.parameter);
  };
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (const std::string& name : groups[i]) {
      ASSERT_TRUE(read_place(name).known) << name;
      EXPECT_EQ(meaning(name), meaning(groups[i][0])) << name;
    }
  }
  for (const char* name :
       {"", "foo.bar", "fc1.weight", "layers.weight", "layers.frobnicate.weight"})
    EXPECT_FALSE(read_place(name).known) << name;
}

TEST(ReadPlace, FindsLayerStageAndFolder) {
  const struct {
    std::string name;
    std::string expected;  // folder|layer|stage
  } cases[] = {
      {"12_query", "|12|query"},
      {"rank_0/12_query", "rank_0|12|query"},
      {"dump.12_query", "dump|12|query"},
      {"a/b.c/12_query", "a/b.c|12|query"},
      {"0_post_ln_pre_attn", "|0|post_ln_pre_attn"},
      {"3_query_0", "|3|query_0"},
      {"007_x", "|7|x"},
      {"5_query.pth", "|5|query"},
      {"5_query.safetensors", "|5|query"},
      {"5_query.weight", "|5|query.weight"},
      {"1_run/5_query", "1_run|5|query"},
      {"query", "none"},
      {"12", "none"},
      {"12_", "none"},
      {"_query", "none"},
      {"-1_query", "none"},
      {"layer12_query", "none"},
      {"12_query/weight", "none"},
      {"model.layers.0.self_attn.q_proj.weight", "none"},
      {"99999999999999999999_query", "none"},
      {"", "none"},
      {"/", "none"},
      {".", "none"},
  };
  for (const auto& [name, expected] : cases) {
    const Place place = read_place(name);
    EXPECT_EQ(place.staged ? fmt::format("{}|{}|{}", folder_in(name, place), place.layer,
                                         stage_in(name, place))
                           : "none",
              expected)
        << name;
  }
}

TEST(ReadPlace, SaysWhereTheNumbersStand) {
  const std::string name = "step_12.model.layers.345.mlp";
  const Place place = read_place(name);
  EXPECT_EQ(name.substr(place.layer_at.first, place.layer_at.size), "345");
  EXPECT_EQ(name.substr(place.count_at.first, place.count_at.size), "12");
  EXPECT_EQ(stage_in(name, place), "mlp");
  EXPECT_EQ(folder_in(name, place), "step_12.model.layers");
}

TEST(ReadPlace, IsSafeOnAnyName) {
  std::string deep, numbers;
  for (int i = 0; i < 5000; ++i) deep += "layers.", numbers += "experts.1.";
  const Names hostile = {deep + "3.q_proj.weight",
                         numbers,
                         std::string(1 << 20, 'a'),
                         std::string(1 << 16, '1') + "_query",
                         "layers.99999999999999999999.q_proj",
                         "layers.999999999.q_proj",
                         std::string("layers\0.3.q", 11),
                         "\xff\xfe/3_\xff",
                         "-3",
                         "@",
                         "@@3",
                         ":0",
                         "a-",
                         "_",
                         "3_",
                         "....",
                         "experts.experts.shared_experts.local_experts"};
  for (const std::string& name : hostile) {
    const Place place = read_place(name);
    EXPECT_LE(place.layer_at.first + std::size_t{place.layer_at.size}, name.size());
    EXPECT_LE(place.count_at.first + std::size_t{place.count_at.size}, name.size());
    stage_in(name, place);
    folder_in(name, place);
  }
  EXPECT_EQ(read_place("layers.99999999999999999999.q_proj").layer, Place::kNone);
  EXPECT_EQ(read_place("layers.999999999.q_proj").layer, 999'999'999);
}

}  // namespace
}  // namespace tensordiff
