// BERT, RoBERTa, ELECTRA and DistilBERT, whose norms stand behind attention and MLP.

#include "naming/convention.h"

namespace tensordiff {
namespace {

constexpr RoleRow kInLayer[] = {
    {Role::query,
     "attention.self.# attention.attention.# attention.@.lin @.lin attention.self.@ self.# "
     "self.@"},
    {Role::attention_heads, "attention.self"},
    {Role::attention_output, "attention.output.dense attention.out.lin"},
    {Role::post_attention_norm,
     "attention.output.layernorm attention.output.layer.norm sa.layer.norm attn.output.norm"},
    {Role::up, "intermediate.dense ffn.lin1 mlp.lin1"},
    {Role::activation,
     "intermediate.act intermediate.intermediate.act.fn ffn.activation mlp.activation"},
    {Role::mlp_output, "output.dense ffn.lin2 mlp.lin2"},
    {Role::post_mlp_norm, "output.layernorm output.layer.norm layer.output.norm"},
};
constexpr RoleRow kOutside[] = {
    {Role::embedding, "embeddings.word.embeddings embeddings"},
    {Role::positions, "embeddings.position.embeddings position.embeddings"},
    {Role::segments, "embeddings.token.type.embeddings token.type.embeddings"},
    {Role::embedding_norm, "embeddings.layernorm embeddings.layer.norm"},
    {Role::pooler, "pooler pooler.dense"},
    {Role::logits, "cls.predictions.decoder predictions.decoder classifier"},
};
constexpr RoleRow kEndings[] = {
    {Role::attention_heads, "attention.self"},
    {Role::post_attention_norm, "attention.output.layernorm sa.layer.norm"},
    {Role::post_mlp_norm, "output.layernorm output.layer.norm"},
    {Role::other, "attention.output"},  // A module with a norm inside, not the layer's own output.
    {Role::embedding, "embeddings"},
};

}  // namespace

constinit const Convention conventions::bert = {
    .name = "bert",
    .example = "bert.encoder.layer.3.attention.self.query.weight",
    .in_layer = kInLayer,
    .outside = kOutside,
    .endings = kEndings,
    .layer_words = "layer",
    .wrappers = "bert roberta",
};

}  // namespace tensordiff
