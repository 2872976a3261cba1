// Weights in GGUF, and what llama.cpp computes from them: "blk.3.attn_q", "Qcur-3".

#include "naming/convention.h"

namespace tensordiff {
namespace {

constexpr RoleRow kInLayer[] = {
    {Role::attention_norm, "attn.norm attn.norm.2"},
    {Role::query, "attn.@ @cur"},
    {Role::query_norm, "attn.@.norm @cur.normed"},
    {Role::fused_qkv, "attn.qkv"},
    {Role::attention_heads, "kqv.merged kqv.merged.cont kqv.out"},
    {Role::attention_output, "attn.output attn.out attn.o"},
    {Role::post_attention_norm, "attn.post.norm"},
    {Role::relative_bias, "attn.rel.b"},
    {Role::middle, "ffn.inp"},
    {Role::cross_query, "cross.attn.@"},
    {Role::cross_output, "cross.attn.o cross.attn.out cross.attn.output"},
    {Role::cross_norm, "cross.attn.norm"},
    {Role::mlp_norm, "ffn.norm post.attention.norm"},
    {Role::router, "ffn.gate.inp gate.inp"},
    {Role::gate, "ffn.gate"},
    {Role::up, "ffn.up"},
    {Role::gate_up, "ffn.gate.up"},
    {Role::activation, "ffn.act ffn.silu ffn.gelu"},
    {Role::gated, "ffn.swiglu ffn.geglu ffn.reglu ffn.gate.par"},
    {Role::mlp_output, "ffn.down ffn.out"},
    {Role::post_mlp_norm, "ffn.post.norm post.ffw.norm post.ffn.norm layer.output.norm"},
    {Role::layer_output, "l.out"},
};
constexpr RoleRow kOutside[] = {
    {Role::patches, "patch.embd"},
    {Role::class_token, "class.embd"},
    {Role::embedding, "token.embd tok.embd inp.embd embd"},
    {Role::embedding_norm, "token.embd.norm"},
    {Role::segments, "token.types"},
    {Role::positions, "position.embd pos.embd inp.pos.embd"},
    {Role::final_norm, "output.norm result.norm"},
    {Role::logits, "output result.output"},
};
constexpr RoleRow kEndings[] = {
    {Role::attention_norm, "attn.norm"},
    {Role::attention_output, "attn.out"},
    {Role::mlp_norm, "ffn.norm"},
};

}  // namespace

constinit const Convention conventions::gguf = {
    .name = "gguf",
    .example = "blk.3.attn_q.weight",
    .in_layer = kInLayer,
    .outside = kOutside,
    .endings = kEndings,
    .layer_words = "blk",
    .wrappers = "enc dec v",
};

}  // namespace tensordiff
