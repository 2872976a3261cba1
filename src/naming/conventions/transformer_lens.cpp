// TransformerLens: "blocks.3.attn.W_Q", "blocks.3.attn.hook_q".

#include "naming/convention.h"

namespace tensordiff {
namespace {

constexpr RoleRow kInLayer[] = {
    {Role::attention_norm, "ln1"},
    {Role::query, "attn.@"},
    {Role::attention_heads, "attn.z"},
    {Role::attention_output, "attn.o attn.out"},
    {Role::layer_input, "resid.pre"},
    {Role::middle, "resid.mid"},
    {Role::mlp_norm, "ln2"},
    {Role::up, "mlp.in"},
    {Role::gate, "mlp.gate"},
    {Role::mlp_output, "mlp.out"},
    {Role::layer_output, "resid.post"},
};
constexpr RoleRow kOutside[] = {
    {Role::embedding, "embed embed.e"},
    {Role::positions, "pos.embed pos.embed.pos"},
    {Role::final_norm, "ln.final"},
    {Role::logits, "unembed unembed.u"},
};
constexpr RoleRow kEndings[] = {
    {Role::query_final, "q.rot"},
    {Role::key_final, "k.rot"},
    {Role::mlp_output, "mlp.out"},
};

}  // namespace

constinit const Convention conventions::transformer_lens = {
    .name = "transformer_lens",
    .example = "blocks.3.attn.W_Q",
    .in_layer = kInLayer,
    .outside = kOutside,
    .endings = kEndings,
};

}  // namespace tensordiff
