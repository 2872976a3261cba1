// What descends from fairseq: BART, OPT, Whisper; and the transformer layers of PyTorch itself.

#include "naming/convention.h"

namespace tensordiff {
namespace {

constexpr RoleRow kInLayer[] = {
    {Role::attention_norm, "self.attn.layer.norm"},
    {Role::fused_qkv, "self.attn.in.proj in.proj"},
    {Role::attention_output, "self.attn.out.proj out.proj"},
    {Role::cross_query, "encoder.attn.@.proj"},
    {Role::cross_output, "encoder.attn.out.proj"},
    {Role::cross_norm, "encoder.attn.layer.norm"},
    {Role::mlp_norm, "final.layer.norm norm3 norm.3 layer.norm3 layer.norm.3"},
    {Role::up, "fc1 linear1"},
    {Role::mlp_output, "fc2 linear2"},
};
constexpr RoleRow kOutside[] = {
    {Role::embedding, "shared"},
    {Role::positions, "embed.positions embed.position"},
    {Role::embedding_norm, "layernorm.embedding"},
    {Role::final_norm, "final.layer.norm layer.norm"},
};
constexpr RoleRow kEndings[] = {
    {Role::attention_output, "out.proj"},
    {Role::embedding, "embed.positions"},
};

}  // namespace

constinit const Convention conventions::bart = {
    .name = "bart",
    .example = "model.decoder.layers.3.encoder_attn.q_proj.weight",
    .in_layer = kInLayer,
    .outside = kOutside,
    .endings = kEndings,
    .wrappers = "decoder encoder opt",
};

}  // namespace tensordiff
