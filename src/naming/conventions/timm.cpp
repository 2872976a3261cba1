// Vision transformers of timm.

#include "naming/convention.h"

namespace tensordiff {
namespace {

constexpr RoleRow kInLayer[] = {
    {Role::attention_norm, "norm1 norm.1"}, {Role::fused_qkv, "attn.qkv qkv"},
    {Role::query_norm, "attn.@.norm"},      {Role::attention_output, "attn.proj"},
    {Role::mlp_norm, "norm2 norm.2"},       {Role::activation, "mlp.activation.func"},
};
constexpr RoleRow kOutside[] = {
    {Role::patches, "patch.embed.proj"},
    {Role::class_token, "cls.token"},
    {Role::positions, "pos.embed"},
    {Role::final_norm, "fc.norm norm"},
    {Role::logits, "head"},
};
constexpr RoleRow kEndings[] = {
    {Role::attention_norm, "norm1"},
    {Role::mlp_norm, "norm2"},
};

}  // namespace

constinit const Convention conventions::timm = {
    .name = "timm",
    .example = "blocks.3.attn.qkv.weight",
    .in_layer = kInLayer,
    .outside = kOutside,
    .endings = kEndings,
    .layer_words = "blocks",
    .wrappers = "backbone net network v",
};

}  // namespace tensordiff
