// GPT-NeoX, Pythia, BLOOM and Falcon.

#include "naming/convention.h"

namespace tensordiff {
namespace {

constexpr RoleRow kInLayer[] = {
    {Role::fused_qkv,
     "attention.query.key.value self.attention.query.key.value query.key.value "
     "self.attn.query.key.value attn.query.key.value"},
    {Role::attention_output, "attention.dense self.attention.dense attn.dense"},
    {Role::attention, "attention self.attention"},
    {Role::up, "mlp.dense.h.to.4h"},
    {Role::activation, "mlp.gelu.impl mlp.gelu"},
    {Role::mlp_output, "mlp.dense.4h.to.h"},
};
constexpr RoleRow kOutside[] = {
    {Role::embedding, "embed.in word.embeddings"},
    {Role::embedding_norm, "word.embeddings.layernorm"},
    {Role::logits, "embed.out"},
};
constexpr RoleRow kEndings[] = {{Role::fused_qkv, "query.key.value qkv"}};

}  // namespace

constinit const Convention conventions::neox = {
    .name = "neox",
    .example = "gpt_neox.layers.3.attention.query_key_value.weight",
    .in_layer = kInLayer,
    .outside = kOutside,
    .endings = kEndings,
    .wrappers = "gpt neox transformer",
};

}  // namespace tensordiff
