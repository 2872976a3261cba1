// GPT-2, GPT-Neo, GPT-J and what took over their names.

#include "naming/convention.h"

namespace tensordiff {
namespace {

constexpr RoleRow kInLayer[] = {
    {Role::attention_norm, "ln.1 ln1 ln.attn"},
    {Role::fused_qkv, "attn.c.attn c.attn attn.attn"},
    {Role::query, "attn.@.proj attn.attention.@.proj"},
    {Role::attention_output, "attn.c.proj attn.out.proj c.proj attn.attention.out.proj"},
    {Role::attention, "attn"},
    {Role::mlp_norm, "ln.2 ln2 ln.mlp"},
    {Role::up, "mlp.c.fc mlp.fc.in c.fc fc.in mlp.fc"},
    {Role::activation, "mlp.act act"},
    {Role::mlp_output, "mlp.c.proj mlp.fc.out fc.out mlp.projection"},
};
constexpr RoleRow kOutside[] = {
    {Role::embedding, "wte embed.wte wte.out"},
    {Role::positions, "wpe embed.wpe wpe.out"},
    {Role::final_norm, "ln.f lnf"},
};
constexpr RoleRow kEndings[] = {
    {Role::attention_norm, "ln.1 ln1"},
    {Role::fused_qkv, "attn.c.attn"},
    {Role::attention_output, "attn.c.proj"},
    {Role::mlp_norm, "ln.2 ln2"},
    {Role::up, "mlp.c.fc"},
    {Role::mlp_output, "mlp.c.proj"},
    {Role::activation, "act"},
    {Role::embedding, "wte wpe"},
    {Role::final_norm, "ln.f"},
};

}  // namespace

constinit const Convention conventions::gpt2 = {
    .name = "gpt2",
    .example = "transformer.h.3.attn.c_attn.weight",
    .in_layer = kInLayer,
    .outside = kOutside,
    .endings = kEndings,
    .layer_words = "h",
    .wrappers = "transformer gpt",
};

}  // namespace tensordiff
