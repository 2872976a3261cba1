// Flax and JAX: T5X, MaxText, Gemma, the vision transformers of big_vision.

#include "naming/convention.h"

namespace tensordiff {
namespace {

constexpr RoleRow kInLayer[] = {
    {Role::attention_norm,
     "pre.attention.norm pre.attention.layer.norm pre.self.attention.norm "
     "pre.self.attention.layer.norm pre.self.attention.layernorm pre.attention.layernorm "
     "pre.attn.norm pre.attn.layernorm layernorm.0"},
    {Role::query,
     "self.attention.# attention.# attn.# # multiheaddotproductattention.0.# "
     "multiheaddotproductattention.1.#"},
    {Role::query_norm,
     "self.attention.#.norm self.attn.#.norm attention.#.norm attn.#.norm "
     "#.norm"},
    {Role::attention_output,
     "self.attention.out attention.out multiheaddotproductattention.0.out "
     "multiheaddotproductattention.1.out attn.attn.vec"},
    {Role::cross_query, "encoder.decoder.attention.#"},
    {Role::cross_output, "encoder.decoder.attention.out"},
    {Role::cross_norm, "pre.cross.attention.layer.norm"},
    {Role::mlp_norm,
     "pre.mlp.norm pre.ffw.norm pre.ffn.norm pre.feedforward.norm pre.feed.forward.norm "
     "post.self.attention.norm post.self.attention.layer.norm post.self.attention.layernorm "
     "post.attention.layer.norm layernorm.2"},
    {Role::gate, "mlp.wi.0 wi.0 ffn.wi.0"},
    {Role::up, "mlp.wi mlp.wi.1 wi wi.1 ffn.wi.1 mlpblock.0.dense.0 mlpblock.3.dense.0"},
    {Role::gate_up, "mlp.gating"},
    {Role::mlp_output, "mlp.wo ffn.wo mlpblock.0.dense.1 mlpblock.3.dense.1"},
};
constexpr RoleRow kOutside[] = {
    {Role::patches, "patch.embedding"},
    {Role::class_token, "cls"},
    {Role::embedding, "token.embedder embedder embedder.input"},
    {Role::positions, "posembed.input.pos position.embedder"},
    {Role::logits, "logits.dense embedder.decode"},
};

}  // namespace

constinit const Convention conventions::flax = {
    .name = "flax",
    .example = "target/decoder/layers_3/self_attention/query/kernel",
    .in_layer = kInLayer,
    .outside = kOutside,
    .layer_words = "layers encoderblock decoderblock",
    .wrappers = "params optimizer target transformer",
};

}  // namespace tensordiff
