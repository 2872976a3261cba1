// Transformer blocks inside U-Nets: diffusers and the original latent diffusion.

#include "naming/convention.h"

namespace tensordiff {
namespace {

constexpr RoleRow kInLayer[] = {
    {Role::query, "attn.to.@ to.@"},
    {Role::fused_qkv, "attn.to.qkv to.qkv"},
    {Role::attention_output, "attn.to.out.0"},
};
constexpr RoleRow kEndings[] = {
    {Role::query, "attn1.to.@"},
    {Role::attention_output, "attn1.to.out.0"},
    {Role::cross_query, "attn2.to.@"},
    {Role::cross_output, "attn2.to.out.0"},
};

}  // namespace

constinit const Convention conventions::diffusers = {
    .name = "diffusers",
    .example = "transformer_blocks.3.attn.to_q.weight",
    .in_layer = kInLayer,
    .endings = kEndings,
};

}  // namespace tensordiff
