// Megatron-LM, its core and the modules of Transformer Engine.

#include "naming/convention.h"

namespace tensordiff {
namespace {

constexpr RoleRow kInLayer[] = {
    {Role::attention_norm, "self.attention.linear.qkv.layer.norm input.layer.norm"},
    {Role::fused_qkv, "self.attention.linear.qkv linear.qkv self.attention.qkv"},
    {Role::query,
     "self.attention.linear.@ self.attn.linear.@ attn.linear.@ attention.linear.@ "
     "linear.@"},
    {Role::query_norm, "self.attention.@.layernorm attention.@.layernorm"},
    {Role::attention_heads,
     "self.attention.core.attention core.attention core.attn self.attn.core.attention"},
    {Role::attention_output, "self.attention.linear.proj linear.proj"},
    {Role::mlp_norm, "pre.mlp.layernorm mlp.linear.fc1.layer.norm pre.mlp.layer.norm"},
    {Role::up, "mlp.linear.fc1 mlp.linear.in"},
    {Role::mlp_output, "mlp.linear.fc2 mlp.linear.out"},
    {Role::gate, "mlp.linear.gate mlp.dense.gate"},
    {Role::up, "mlp.linear.up"},
    {Role::mlp_output, "mlp.linear.down"},
};
constexpr RoleRow kOutside[] = {
    {Role::embedding, "embedding.word.embeddings"},
    {Role::positions, "embedding.position.embeddings"},
    {Role::segments, "embedding.tokentype.embeddings tokentype.embeddings"},
    {Role::final_norm, "final.layernorm"},
    {Role::logits, "output.layer"},
};

}  // namespace

constinit const Convention conventions::megatron = {
    .name = "megatron",
    .example = "decoder.layers.3.self_attention.linear_qkv.weight",
    .in_layer = kInLayer,
    .outside = kOutside,
    .wrappers = "decoder encoder language optim rng",  // Its files are called model_optim_rng.pt.
};

}  // namespace tensordiff
