// What people write who name their captures and ports themselves.

#include "naming/convention.h"

namespace tensordiff {
namespace {

constexpr RoleRow kInLayer[] = {
    {Role::layer_input, "input in layer.input block.input hidden.in"},
    {Role::attention_norm,
     "attn.ln input.norm attn.layernorm attn.layer.norm norm.attn ln.before.attn"},
    {Role::query, "@ attention.@ self.attention.@ self.attention.@.proj"},
    {Role::query_final, "@.rope attn.@.rope self.attn.@.rope attention.@.rope"},
    {Role::query_norm, "attention.@.norm self.attn.norm.@"},
    {Role::attention_heads,
     "attn.heads heads.out attn.heads.out attention.heads attn.core context attn.context attn.ctx "
     "attn.values attn.mix heads self.attn.heads.out self.attn.heads self.attention.context "
     "self.attn.context attention.context"},
    {Role::setting, "rotary.cos"},
    {Role::positions, "rotary.sin"},
    {Role::attention_output,
     "o attn.o.proj attn.projection self.attn.proj attention.o attention.o.proj "
     "attention.out.proj attention.proj self.attention.o"},
    {Role::attention, "attn.block"},
    {Role::middle, "post.attn post.attn.resid attn.resid after.attn after.attention"},
    {Role::cross_query, "cross.attn.# cross.attention.@ crossattention.self.# cross.attn.@.proj"},
    {Role::cross_output,
     "cross.attention.out cross.attn.out.proj crossattention.output.dense cross.attn.o.proj"},
    {Role::cross_norm, "cross.attn.ln"},
    {Role::mlp_norm,
     "mlp.ln post.attn.norm mlp.norm ffn.ln mlp.layernorm ffn.layernorm post.self.attn.norm "
     "ffn.layer.norm mlp.layer.norm norm.mlp norm.ffn ln.before.mlp mlp.input"},
    {Role::router, "router.logits gate.logits mlp.router.logits"},
    {Role::gate, "ffn.gate.proj feed.forward.gate"},
    {Role::up, "fc mlp.up ffn.fc1 ffn.in ffn.up.proj mlp.hidden"},
    {Role::gate_up, "ffn.gate.up.proj"},
    {Role::activation,
     "activation gelu silu mlp.silu mlp.nonlin mlp.act.func ffn.act.fn mlp.swiglu"},
    {Role::gated, "mlp.gated"},
    {Role::mlp_output, "mlp.down mlp.output ffn.fc2 ffn.output ffn.down.proj ffn.projection"},
    {Role::mlp, "ffn mlp.block"},
    {Role::layer_output,
     "output out layer.output block.output layer.out hidden hidden.out hidden.states residual "
     "resid"},
};
constexpr RoleRow kOutside[] = {
    {Role::embedding,
     "token.embeddings tokens embeddings.tokens embedding.tokens emb tok.emb tok.embed embedding "
     "embedding.output"},
    {Role::positions,
     "pos.embedding positions embeddings.positions embedding.positions pos.emb "
     "positional.encoding pos embeddings.position rotary.cos"},
    {Role::setting, "rotary.sin"},
    {Role::segments, "embeddings.segments"},
    {Role::embedding_norm, "embed.norm"},
    {Role::final_norm, "ln.out final.norm final.ln norm.final post.ln norm.out"},
    {Role::logits, "logits final.logits lm.head.out lm.logits output.logits"},
};
constexpr RoleRow kEndings[] = {
    {Role::mlp_norm, "mlp.norm"},
    {Role::query_norm, "@.norm"},
    {Role::query_final, "q.rope q.embed"},
    {Role::key_final, "k.rope k.embed"},
    {Role::query, "# @"},
    {Role::attention_heads, "heads.out attn.heads"},
    {Role::gate, "mlp.gate"},
    {Role::up, "mlp.up"},
    {Role::activation, "mlp.act"},
    {Role::layer_output, "output"},
    {Role::final_norm, "final.norm"},
    {Role::logits, "logits"},
};

}  // namespace

constinit const Convention conventions::captures = {
    .name = "captures",
    .example = "layers.3.attn.heads_out",
    .in_layer = kInLayer,
    .outside = kOutside,
    .endings = kEndings,
    .layer_words = "layer layers block blocks l",
    .wrappers = "model module orig mod base net network",
};

}  // namespace tensordiff
