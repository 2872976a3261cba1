// LitGPT.

#include "naming/convention.h"

namespace tensordiff {
namespace {

constexpr RoleRow kInLayer[] = {
    {Role::attention_norm, "norm.1"},
    {Role::fused_qkv, "attn.attn attn.qkv"},
    {Role::query_norm, "attn.norm.@ norm.@"},
    {Role::attention_output, "attn.proj"},
    {Role::mlp_norm, "norm.2 post.attention.norm"},
    {Role::post_mlp_norm, "post.mlp.norm"},
    {Role::up, "mlp.fc"},
    {Role::mlp_output, "mlp.proj"},
};

}  // namespace

constinit const Convention conventions::litgpt = {
    .name = "litgpt",
    .example = "transformer.h.3.attn.attn.weight",
    .in_layer = kInLayer,
};

}  // namespace tensordiff
