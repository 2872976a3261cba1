// The original Llama, and InternLM, OLMo and other descendants of its names.

#include "naming/convention.h"

namespace tensordiff {
namespace {

constexpr RoleRow kInLayer[] = {
    {Role::attention_norm, "attention.norm"},
    {Role::query, "attention.w@ attn.w@ w@"},
    {Role::fused_qkv, "attention.wqkv attn.wqkv wqkv mixer.wqkv"},
    {Role::attention_output, "attention.wo attn.wo wo"},
    {Role::mlp_norm, "ffn.norm"},
    {Role::gate, "feed.forward.w1 mlp.w1 ffn.w1"},
    {Role::up, "feed.forward.w3 mlp.w3 ffn.w3"},
    {Role::mlp_output, "feed.forward.w2 mlp.w2 ffn.w2"},
    {Role::gate_up, "feed.forward.w13 mlp.w13"},
    {Role::activation, "feed.forward.act"},
    // OLMo before it came to Hugging Face.
    {Role::fused_qkv, "att.proj"},
    {Role::mlp_output, "ff.out"},
    {Role::mlp_norm, "ff.norm"},
};
constexpr RoleRow kOutside[] = {
    {Role::embedding, "tok.embeddings"},
    {Role::logits, "output ff.out"},
};
constexpr RoleRow kEndings[] = {
    {Role::attention_norm, "attention.norm"},
    {Role::mlp_norm, "ffn.norm"},
};

}  // namespace

constinit const Convention conventions::meta_llama = {
    .name = "meta_llama",
    .example = "layers.3.attention.wq.weight",
    .in_layer = kInLayer,
    .outside = kOutside,
    .endings = kEndings,
};

}  // namespace tensordiff
