// TensorFlow and Keras, with the layers of keras_hub.

#include "naming/convention.h"

namespace tensordiff {
namespace {

constexpr RoleRow kInLayer[] = {
    {Role::attention_norm,
     "self.attention.layer.norm self.attention.layernorm attention.layernorm self.attention.norm"},
    {Role::query,
     "self.attention.layer.# mha.# attention.#.proj self.attention.#.proj attn.#.proj"},
    {Role::attention_output,
     "self.attention.attention.output self.attention.layer.attention.output mha.out "
     "self.attention.output.dense attention.output.proj"},
    {Role::cross_norm, "cross.attention.layer.norm cross.attention.norm cross.attn.layer.norm"},
    {Role::mlp_norm, "feedforward.layer.norm feedforward.layernorm"},
    {Role::gate, "feedforward.gate.dense"},
    {Role::up, "feedforward.intermediate.dense"},
    {Role::mlp_output, "feedforward.output.dense"},
};
constexpr RoleRow kOutside[] = {
    {Role::embedding, "embed.token.embeddings embeddings.token"},
    {Role::embedding_norm, "embedding.layernorm embedding.layer.norm"},
    {Role::segments, "embedding.token.type.embeddings segment.embedding segment.embeddings"},
    {Role::pooler, "pooled.dense"},
    {Role::final_norm, "sequence.output.layernorm sequence.output.layer.norm"},
    {Role::logits, "token.embedding.reverse predictions"},
};

}  // namespace

constinit const Convention conventions::keras = {
    .name = "keras",
    .example = "transformer_layer_3/self_attention_layer/query/kernel",
    .in_layer = kInLayer,
    .outside = kOutside,
};

}  // namespace tensordiff
