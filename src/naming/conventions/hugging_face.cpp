// Decoders of Hugging Face: Llama, Mistral, Mixtral, Qwen, Gemma, Phi, OLMo.

#include "naming/convention.h"

namespace tensordiff {
namespace {

constexpr RoleRow kInLayer[] = {
    {Role::attention_norm, "input.layernorm"},
    {Role::query,
     "self.attn.@.proj @.proj self.attn.# self.attn.@ self.attn.#.proj attention.@.proj"},
    {Role::query_norm, "self.attn.@.norm self.attn.@.layernorm @.norm @.layernorm"},
    {Role::fused_qkv, "self.attn.qkv.proj qkv.proj self.attn.w.pack w.pack self.attn.qkv"},
    {Role::attention_output, "self.attn.o.proj o.proj self.attn.dense"},
    {Role::attention, "self.attn attn.module"},
    {Role::mlp_norm, "post.attention.layernorm pre.feedforward.layernorm post.self.attn.layernorm"},
    {Role::post_mlp_norm, "post.feedforward.layernorm post.mlp.layernorm"},
    {Role::gate, "mlp.gate.proj gate.proj gate feed.forward.gate.proj"},
    {Role::up, "mlp.up.proj up.proj up feed.forward.up.proj"},
    {Role::gate_up, "mlp.gate.up.proj gate.up.proj mlp.gate.up gate.up"},
    {Role::activation, "mlp.act.fn act.fn mlp.activation.fn activation.fn"},
    {Role::mlp_output, "mlp.down.proj down.proj down feed.forward.down.proj"},
    {Role::mlp, "mlp block.sparse.moe feed.forward"},
    // Experts of Mixtral, in the names of the first release.
    {Role::router, "block.sparse.moe.gate mlp.router mlp.router.gate router"},
    {Role::gate, "block.sparse.moe.w1 w1"},
    {Role::mlp_output, "block.sparse.moe.w2 w2"},
    {Role::up, "block.sparse.moe.w3 w3"},
    {Role::gate_up, "block.sparse.moe.w13"},
    {Role::layer_output, "-"},
};
constexpr RoleRow kOutside[] = {
    {Role::embedding, "embed.tokens embed.token"},
    {Role::final_norm, "norm final.layernorm"},
    {Role::logits, "lm.head score"},
};
constexpr RoleRow kEndings[] = {
    {Role::attention_norm, "input.layernorm"},
    {Role::mlp_norm, "pre.feedforward.layernorm post.attention.layernorm"},
    {Role::post_mlp_norm, "post.feedforward.layernorm"},
    {Role::fused_qkv, "qkv.proj"},
    {Role::query, "@.proj"},
    {Role::attention_output, "o.proj"},
    {Role::gate, "gate.proj"},
    {Role::up, "up.proj"},
    {Role::activation, "act.fn"},
    {Role::mlp_output, "down.proj"},
    {Role::mlp, "mlp block.sparse.moe"},
    {Role::embedding, "embed.tokens"},
    {Role::logits, "lm.head"},
};

}  // namespace

constinit const Convention conventions::hugging_face = {
    .name = "hugging_face",
    .example = "model.layers.3.self_attn.q_proj.weight",
    .in_layer = kInLayer,
    .outside = kOutside,
    .endings = kEndings,
    .layer_words = "layers layer",
    .wrappers = "model module language llama base text",
};

}  // namespace tensordiff
