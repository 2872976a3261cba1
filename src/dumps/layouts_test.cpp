// What each layout reads from names, and that no name can do harm.

#include "dumps/layout.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "base/text.h"
#include "dumps/test_layouts.h"
#include "naming/naming.h"

namespace tensordiff {
namespace {

using namespace test_layouts;

struct Grammar {
  const Layout& layout;
  Texts names, expected;
};

const std::vector<Grammar>& grammars() {
  static const std::vector<Grammar> kGrammars = {
      {layouts::forward_hook,
       {"TP1_PP0_Rank1_pid201/Pass00000.model.embed_tokens",
        "TP1_PP0_Rank1_pid201/Pass00000.model.layers.0.mlp.down_proj",
        "TP1_PP0_Rank1_pid201/Pass00001.model", "TP1_PP0_Rank1_pid201/Pass00001.model.embed_tokens",
        "TP1_PP0_Rank1_pid201/Pass00001.model.norm.1"},
       // What the whole model gave stands in the file of the next pass.
       {"model.embed_tokens rank 1", "model.layers.0.mlp.down_proj rank 1", "model rank 1",
        "model.embed_tokens pass 1 rank 1", "model.norm output 1 pass 1 rank 1"}},
      {layouts::sglang_dumper,
       {"step=2___rank=1___dump_index=7___name=attn_q___recompute_status=disabled___layer_id=3"
        ".value",
        "dump_20260823_101201_107919/"
        "step=0___rank=0___dump_index=9___name=non_intrusive__model.layers.0.self_attn.rotary_emb"
        ".output.1___recompute_status=disabled___layer_id=5.value",
        "step=0___rank=0___dump_index=9___name=non_intrusive__model.norm.output"
        "___recompute_status=disabled",
        "step=0___rank=0___dump_index=9___name=x___recompute_status=recompute___chunk=4.value",
        "step=0___rank=0___dump_index=9___name=x.y___recompute_status=disabled.meta.world_size"},
       {"layers.3.attn_q pass 2 rank 1",
        "dump_20260823_101201_107919/model.layers.5.self_attn.rotary_emb output 1 rank 0",
        "model.norm rank 0", "x.recompute.chunk=4 rank 0"}},
      {layouts::sglang_dumper,  // Megatron counts layers from 1.
       {"step=0___rank=0___dump_index=7___name=mlp_output___layer_number=2.value",
        "step=0___rank=0___dump_index=3___name=mlp_output___layer_number=1.value",
        "step=0___rank=0___dump_index=3___name=mlp_output___layer_number=1"
        ".meta.megatron_parallel_info.tp_size"},
       {"layers.1.mlp_output rank 0", "layers.0.mlp_output rank 0"}},
      {layouts::module_hooks,  // A counter of the hooks, in each pass anew.
       {"step_0/00007_model.embed_tokens", "step_0/00008_model.layers.0.mlp",
        "step_0/00009_model.layers.0.0", "step_1/00007_model.embed_tokens",
        "step_1/00008_model.layers.0.mlp", "step_1/00009_model.layers.0.0"},
       {"model.embed_tokens", "model.layers.0.mlp", "model.layers.0 output 0",
        "model.embed_tokens pass 1", "model.layers.0.mlp pass 1",
        "model.layers.0 output 0 pass 1"}},
      {layouts::module_folders,  // vLLM's module of RoPE is one for all layers: calls are layers.
       {"010fed05/step_1/model.embed_tokens/outputs_cuda_1",
        "010fed05/step_1/model.layers.0.self_attn.qkv_proj/outputs_0_cuda_1",
        "010fed05/step_1/model.layers.0.self_attn.qkv_proj/inputs_0_cuda_1",
        "010fed05/step_1/model.layers.0.self_attn.rotary_emb/outputs_1_cuda_1",
        "010fed05/step_1/model.layers.0.self_attn.rotary_emb_3/outputs_0_cuda_1",
        "010fed05/step_1/model.layers.0.mlp_1/outputs_cuda_1",
        "010fed05/step_1/model.layers.0.mlp/outputs_cuda_1"},
       {"model.embed_tokens pass 1 rank 1",
        "model.layers.0.self_attn.qkv_proj output 0 pass 1 rank 1",
        "model.layers.0.self_attn.rotary_emb output 1 pass 1 rank 1",
        "model.layers.3.self_attn.rotary_emb output 0 pass 1 rank 1",
        "model.layers.0.mlp@1 pass 1 rank 1", "model.layers.0.mlp pass 1 rank 1"}},
      {layouts::module_folders,
       {"npu1_7001/2/root.model.layers.0.mlp/output", "npu1_7001/2/root.model.layers.0/output_1",
        "npu1_7001/2/root.model.norm/input_0"},
       {"model.layers.0.mlp pass 2 rank 1", "model.layers.0 output 1 pass 2 rank 1"}},
      {layouts::module_folders,
       {"model.layers.0.mlp_outputs_3.output", "model.norm_outputs_3.output_1",
        "model.norm_inputs_3.input"},
       {"model.layers.0.mlp pass 3", "model.norm output 1 pass 3"}},
      {layouts::layer_dicts,
       {"embed", "0.attn_out", "0.ffn_norm", "0.mlp.down_proj", "1.attn_out", "1.ffn_norm",
        "1.mlp.down_proj"},
       {"embed", "layers.0.attn_out", "layers.0.ffn_norm", "layers.0.mlp.down_proj",
        "layers.1.attn_out", "layers.1.ffn_norm", "layers.1.mlp.down_proj"}},
      {layouts::layer_lists,  // A list is called by what is in it.
       {"mlp_outputs.0", "mlp_outputs.1", "layers_output.0", "layers_output.1"},
       {"layers.0.mlp_output", "layers.1.mlp_output", "layers.0.layer_output",
        "layers.1.layer_output"}},
      {layouts::llama_cpp,
       {"embd", "attn_norm-3", "Qcur-3 (reshaped)", "Qcur-3", "Qcur-3 (view) (permuted)",
        "ffn_out-3"},
       {"embd", "attn_norm-3", "Qcur-3 (reshaped)", "layers.3.self_attn.q_rope",
        "Qcur-3 (view) (permuted)", "ffn_out-3"}},
      {layouts::transformers_debugger,
       {"LlamaForCausalLM.model.layers.3.mlp.down_proj_outputs.data",
        "LlamaForCausalLM.model.rotary_emb_outputs_1.data",
        "LlamaForCausalLM.model.norm_inputs_args_0.data", "LlamaForCausalLM_outputs_logits.data",
        "LlamaForCausalLM_inputs_kwargs_attention_bias.data"},
       {"model.layers.3.mlp.down_proj", "model.rotary_emb output 1", "logits"}},
      {layouts::msprobe,  // What the output projections read, in a list of one model.
       {"step0/rank0/Module.0.model.layers.2.self_attn.o_proj.Linear.forward.0.input.0",
        "step0/rank0/Module.0.model.layers.2.mlp.down_proj.Linear.forward.0.input.0",
        "step0/rank0/Module.0.model.layers.2.mlp.down_proj.Linear.forward.0.output.0"},
       {"model.layers.2.self_attn.attn rank 0", "model.layers.2.mlp.gated rank 0",
        "model.layers.2.mlp.down_proj output 0 rank 0"}},
      {layouts::msprobe,  // MindSpore.
       {"step0/rank0/dump_tensor_data/Cell.model.layers.0.mlp.LlamaMLP.forward.0.output.0",
        "step0/rank0/dump_tensor_data/Cell.model.layers.0.mlp.LlamaMLP.forward.0.input.0",
        "step0/rank0/dump_tensor_data/Mint.add.0.forward.output.0"},
       {"model.layers.0.mlp output 0 rank 0", "model.layers.0.mlp.inputs.0 rank 0",
        "Mint.add.0.forward.output.0 rank 0"}},
      {layouts::msprobe,
       {"step1/rank2/dump_tensor_data/Module.model.layers.0.mlp.LlamaMLP.forward.0.output.0",
        "proc4711/Module.model.norm.RMSNorm.forward.0.output.1",
        "Module.model.norm.RMSNorm.forward.0.parameters.weight",
        "Module.model.norm.RMSNorm.forward.0.input.0",
        "Module.model.norm.RMSNorm.backward.0.output.0", "Functional.linear.3.forward.output.0"},
       {"model.layers.0.mlp output 0 pass 32768 rank 2", "model.norm output 1", "model.norm.weight",
        "model.norm.inputs.0", "model.norm.backward.output.0",
        "Functional.linear.3.forward.output.0"}},
      {layouts::tensorrt_llm,  // A model in a model: the layers are counted where they are called.
       {"rank0/2.LlamaForCausalLM-1.LlamaModel-2.LlamaDecoderLayer-4.GatedMLP-output.x",
        "rank0/2.LlamaForCausalLM-1.LlamaModel-2.LlamaDecoderLayer-5.RMSNorm-output.2",
        "rank0/2.LlamaForCausalLM-1.LlamaModel-3.LlamaDecoderLayer-3.GatedMLP-output.x",
        "rank0/2.LlamaForCausalLM-1.LlamaModel-3.LlamaDecoderLayer-4.RMSNorm-output.2"},
       {"model.layers.0.mlp pass 2 rank 0", "model.layers.1.input_layernorm pass 2 rank 0",
        "model.layers.1.mlp pass 2 rank 0", "model.norm pass 2 rank 0"}},
      {layouts::tensorrt_llm,
       {"rank0/1.LlamaModel-1.Embedding-input.input", "rank0/1.LlamaModel-1.Embedding-output.input",
        "rank0/1.LlamaModel-1.Embedding-output.1",
        "rank0/1.LlamaModel-2.LlamaDecoderLayer-1.RMSNorm-output.residual",
        "rank0/1.LlamaModel-2.LlamaDecoderLayer-2.LlamaAttention-1.Linear-output.1",
        "rank0/1.LlamaModel-2.LlamaDecoderLayer-2.LlamaAttention-2.Linear-input.input",
        "rank0/1.LlamaModel-2.LlamaDecoderLayer-2.LlamaAttention-2.Linear-output.1",
        "rank0/1.LlamaModel-2.LlamaDecoderLayer-3.RMSNorm-output.2",
        "rank0/1.LlamaModel-2.LlamaDecoderLayer-3.RMSNorm-output.3",
        "rank0/1.LlamaModel-2.LlamaDecoderLayer-4.GatedMLP-output.all_rank_num_tokens",
        "rank0/1.LlamaModel-2.LlamaDecoderLayer-5.RMSNorm-output.2",
        "rank0/1.LlamaModel-2.LlamaDecoderLayer-output.hidden_states"},
       {"model.embed_tokens pass 1 rank 0", "model.layers.0.input_layernorm pass 1 rank 0",
        "model.layers.0.self_attn.qkv_proj pass 1 rank 0",
        "model.layers.0.self_attn.o_proj pass 1 rank 0",
        "model.layers.0.self_attn.attn pass 1 rank 0",
        "model.layers.0.post_attention_layernorm output 0 pass 1 rank 0",
        "model.layers.0.post_attention_layernorm output 1 pass 1 rank 0",
        "model.layers.0.mlp pass 1 rank 0", "model.norm pass 1 rank 0"}},
      {layouts::transformer_lens,
       {"blocks.0.ln1.hook_normalized", "blocks.0.mlp.hook_pre", "blocks.0.mlp.hook_pre_linear",
        "blocks.0.mlp.hook_post", "blocks.0.attn.hook_rot_q", "blocks.0.hook_resid_mid"},
       {"blocks.0.ln1.before_weight", "blocks.0.mlp.gate_proj", "blocks.0.mlp.up_proj",
        "blocks.0.mlp.gated", "blocks.0.attn.q_rope", "blocks.0.hook_resid_mid"}},
      {layouts::llama_cpp,
       {"Qcur-0", "attn_norm-0", "ffn_moe_out-11", "l_out-0", "result_norm"},
       {"layers.0.self_attn.q_rope", "attn_norm-0", "layers.11.mlp", "l_out-0", "result_norm"}},
      {layouts::transformer_engine,
       {"rank_1/iter_000002/decoder_layers_3_mlp_linear_fc1_activation.high_precision",
        "rank_1/iter_000002/decoder_layers_3_mlp_linear_fc1_output.high_precision",
        "decoder_layers_3_mlp_linear_fc1_weight.high_precision"},
       {"layers.3.post_attention_layernorm pass 2 rank 1",
        "decoder_layers_3_mlp_linear_fc1 pass 2 rank 1", "decoder_layers_3_mlp_linear_fc1.weight"}},
      {layouts::transformer_engine,
       {"rank_0/decoder_layers_1_self_attention_linear_proj_activation_iter_000007.high_precision",
        "rank_0/layers_1_layernorm_mlp_fc2_activation_iter_000007.high_precision",
        "rank_0/layers_1_self_attention_layernorm_qkv_activation_iter_000007.high_precision"},
       {"layers.1.self_attn.attn pass 7 rank 0", "layers.1.mlp.gated pass 7 rank 0",
        "layers.1.input_layernorm pass 7 rank 0"}},
      {layouts::onnx_values,
       {"/model/embed_tokens/Gather_output_0", "/model/layers.0/input_layernorm/Mul_output_0",
        "/model/layers.0/input_layernorm/Mul_1_output_0",
        "/model/layers.0/self_attn/q_proj/MatMul_output_0",
        "/model/layers.0/self_attn/Reshape_5_output_0", "/model/layers.0/Add_output_0",
        "/model/layers.0/mlp/gate_proj/MatMul_output_0", "/model/layers.0/mlp/Mul_output_0",
        "/model/layers.0/Add_1_output_0", "/model/Constant_3_output_0", "logits"},
       {"model.embed_tokens", "/model/layers.0/input_layernorm/Mul_output_0",
        "model.layers.0.input_layernorm", "model.layers.0.self_attn.q_proj",
        "model.layers.0.self_attn.attn", "model.layers.0.resid_mid", "model.layers.0.mlp.gate_proj",
        "model.layers.0.mlp.gated", "model.layers.0", "logits"}},
      {layouts::onnx_values,  // Node dumps: the name of the file, then that of the value.
       {"_model_layers_0_mlp_up_proj_MatMul_output_0_rank_1./model/layers.0/mlp/up_proj/"
        "MatMul_output_0",
        "_model_norm_Mul_output_0_default_rank_0./model/norm/Mul_output_0",
        "_model_norm_Pow_output_0./model/norm/Pow_output_0"},
       {"model.layers.0.mlp.up_proj rank 1", "model.norm rank 0", "/model/norm/Pow_output_0"}},
      {layouts::onnx_values,  // Several runs of a session.
       {"iteration_0//model/norm/Mul_output_0", "iteration_1//model/norm/Mul_output_0",
        "iteration_1//model/norm/Pow_output_0"},
       {"model.norm", "model.norm pass 1", "/model/norm/Pow_output_0 pass 1"}},
      {layouts::llama_cpp,  // A log has a name as often as it is computed.
       {"Qcur-0", "Qcur-0@1", "Qcur-0@2", "Vcur-0", "Vcur-0@1", "l_out-0"},
       {"layers.0.self_attn.q_proj", "Qcur-0@1", "layers.0.self_attn.q_rope",
        "layers.0.self_attn.v_proj", "Vcur-0", "l_out-0"}},
      {layouts::module_hooks,  // Modules with parts were hooked: two numbers are two outputs.
       {"model.layers.0.input_layernorm", "model.layers.0.self_attn.q_proj",
        "model.layers.0.self_attn.o_proj", "model.layers.0.self_attn",
        "model.layers.0.block_sparse_moe.gate", "model.layers.0.block_sparse_moe.0",
        "model.layers.0.block_sparse_moe.1", "model.layers.0"},
       {"model.layers.0.input_layernorm", "model.layers.0.self_attn.q_proj",
        "model.layers.0.self_attn.o_proj", "model.layers.0.self_attn",
        "model.layers.0.block_sparse_moe.gate", "model.layers.0.block_sparse_moe output 0",
        "model.layers.0.block_sparse_moe output 1", "model.layers.0"}},
      {layouts::transformer_engine,  // Statistics that are logged in place of tensors.
       {"nvdlfw_inspect_globalrank-1/iter_000002/decoder.layers.3.mlp.linear_fc2_activation"
        ".statistics",
        "iter_000002/decoder.layers.3.mlp.linear_fc2_output.statistics",
        "iter_000002/decoder.layers.3.mlp.linear_fc1_weight.statistics"},
       {"layers.3.mlp.gated pass 2 rank 1", "decoder.layers.3.mlp.linear_fc2 pass 2",
        "decoder.layers.3.mlp.linear_fc1.weight pass 2"}},
      {layouts::tensorrt_engine,
       {"tllm_debug/PP_1/TP_1/iteration_3/transformer.vocab_embedding.output",
        "PP_1/TP_2/iteration_4/transformer.layers.0.attention.qkv.output",
        "iteration_4/transformer.layers.0.mlp.proj", "PP_1/TP_1/iteration_4/logits"},
       {"transformer.vocab_embedding pass 3", "transformer.layers.0.attention.qkv pass 4",
        "transformer.layers.0.mlp.proj pass 4", "logits pass 4"}},
      {layouts::layer_lists,
       {"resid.0", "resid.1", "mlp_out.0", "mlp_out.1", "logits"},
       {"layers.0.resid", "layers.1.resid", "layers.0.mlp_out", "layers.1.mlp_out", "logits"}},
      {layouts::module_hooks,  // A list of passes.
       {"0.model.layers.0.mlp", "0.model.layers.0", "1.model.layers.0.mlp", "1.model.layers.0"},
       {"model.layers.0.mlp", "model.layers.0", "model.layers.0.mlp pass 1",
        "model.layers.0 pass 1"}},
      {layouts::module_hooks,  // Files of passes, with tuples.
       {"step_2/model.layers.0.0", "step_2/model.layers.0.1", "step_2/model.norm"},
       {"model.layers.0 output 0 pass 2", "model.layers.0 output 1 pass 2", "model.norm pass 2"}},
      {layouts::flax,
       {"intermediates.layers_0.mlp.__call__.0", "layers_0.mlp.__call__.1",
        "intermediates.layers_0.attention.__call__.0.1"},
       {"layers_0.mlp", "layers_0.mlp pass 1", "layers_0.attention output 1"}},
      {layouts::flax,
       {"intermediates/model/layers/0/mlp/__call__", "model/layers/0/__call__/0/0",
        "model/layers/0/self_attn/rotary_emb/__call__/0/0",
        "model/layers/0/self_attn/rotary_emb/__call__/0/1"},
       // Hugging Face gives (key, query).
       {"model.layers.0.mlp", "model.layers.0 output 0",
        "model.layers.0.self_attn.rotary_emb output 1",
        "model.layers.0.self_attn.rotary_emb output 0"}},
      {layouts::module_hooks,
       {"model.embed_tokens", "model.layers.0.0", "model.layers.0.1", "model.norm.0",
        "model.layers.0.mlp.0", "model.layers.0.mlp.1"},
       {"model.embed_tokens", "model.layers.0 output 0", "model.layers.0 output 1",
        "model.norm output 0", "model.layers.0.mlp.0", "model.layers.0.mlp.1"}},
      {layouts::module_hooks,
       {"model.layers.0.self_attn.output", "model.layers.0.mlp.output.0", "model.norm.output"},
       {"model.layers.0.self_attn", "model.layers.0.mlp output 0", "model.norm"}},
      {layouts::module_hooks,  // Megatron gives (output, None).
       {"decoder.layers.0.self_attention.linear_qkv.0", "decoder.layers.0.mlp.linear_fc2.0",
        "decoder.layers.0"},
       {"decoder.layers.0.self_attention.linear_qkv output 0",
        "decoder.layers.0.mlp.linear_fc2 output 0", "decoder.layers.0"}},
  };
  return kGrammars;
}

TEST(Layouts, ReadNames) {
  for (const Grammar& grammar : grammars()) {
    const Catalog catalog = named(grammar.names);
    EXPECT_EQ(recognised(catalog), &grammar.layout) << grammar.names[0];
    EXPECT_EQ(told(grammar.layout, catalog), grammar.expected);
  }
}

TEST(Layouts, ListsOverLayersMayBeStacked) {
  Catalog catalog;
  for (const char* name : {"resid", "attn_out"})
    catalog.tensors.push_back({name, noise_view({2, 1, 4, 8}, 1), ""});
  EXPECT_EQ(recognised(catalog), &layouts::layer_lists);
  EXPECT_EQ(told(layouts::layer_lists, catalog),
            (Texts{"layers.0.resid", "layers.1.resid", "layers.0.attn_out", "layers.1.attn_out"}));
}

TEST(Layouts, IntegersAreFactsAndFloatsOfTheSameNameAreNot) {
  Catalog catalog = named({"model.embed_tokens", "model.layers.0.mlp", "embed.positions"});
  catalog.tensors.push_back(integers("input_ids", 4));
  EXPECT_EQ(recognised(catalog), &layouts::module_hooks);
  EXPECT_EQ(told(layouts::module_hooks, catalog), (Texts{"model.embed_tokens", "model.layers.0.mlp",
                                                         "embed.positions", "input_ids fact"}));
}

TEST(Layouts, WhatGoesIntoModulesTellsTheTokens) {
  Catalog catalog = named({"step_0/model.embed_tokens/outputs_cuda_0"});
  for (const char* name : {"step_0/model.embed_tokens/inputs_0_cuda_0",
                           "step_0/model.layers.0.self_attn.rotary_emb/inputs_0_cuda_0",
                           "step_0/model.layers.0.mlp/inputs_0_cuda_0"})
    catalog.tensors.push_back(integers(name, 4));
  std::vector<RunFact> facts;
  for (const Record& record : layouts::module_folders.read(catalog).records)
    facts.push_back(record.fact);
  EXPECT_EQ(facts, (std::vector{RunFact::none, RunFact::ids, RunFact::positions}));
}

TEST(Layouts, LeaveOthersAlone) {
  for (const Texts& names :
       {Texts{"model.layers.0.self_attn.q_proj.weight", "model.layers.0.input_layernorm.weight",
              "model.norm.weight"},
        Texts{"model.layers.0.mlp", "model.layers.0", "model.norm"},
        Texts{"bert.encoder.layer.0.attention.output", "bert.encoder.layer.0.output",
              "bert.encoder.layer.0", "bert.encoder.layer.0.intermediate"},
        Texts{"mlp.0", "mlp.1", "mlp.2"}, Texts{"0_query", "0_key"}, Texts{"a", "b", "c"}, Texts{}})
    EXPECT_EQ(recognised(named(names)), nullptr);
}

// Every name cut off anywhere, and with any byte changed, is read or not; nothing else happens.
TEST(Layouts, NoNameDoesHarm) {
  for (const Grammar& grammar : grammars()) {
    for (const std::string& name : {grammar.names.front(), grammar.names.back()}) {
      Texts broken;
      for (std::size_t i = 0; i <= name.size(); ++i) {
        broken.push_back(name.substr(0, i));
        broken.push_back(name.substr(i));
        for (const char c : {'-', '.', '9'}) {
          std::string changed = name;
          if (i < changed.size()) changed[i] = c;
          broken.push_back(std::move(changed));
        }
      }
      broken.push_back(name + "99999999999999999999");
      Catalog catalog = named(broken);
      make_names_unique(catalog);
      for (const Layout* layout : layouts::kAll) {
        EXPECT_LE(layout->read(catalog).records.size(), catalog.tensors.size());
        Catalog copy = catalog;
        EXPECT_TRUE(arrange(copy, layout->name).ok());
      }
    }
  }
}

}  // namespace
}  // namespace tensordiff
