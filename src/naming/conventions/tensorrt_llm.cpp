// TensorRT-LLM, where "fc" is the gate of a gated MLP: match/meaning.cpp.

#include "naming/convention.h"

namespace tensordiff {
namespace {

constexpr RoleRow kInLayer[] = {
    {Role::fused_qkv, "attention.qkv"}, {Role::attention_output, "attention.dense"},
    {Role::mlp_norm, "post.layernorm"}, {Role::up, "mlp.fc"},
    {Role::gate, "mlp.gate"},           {Role::mlp_output, "mlp.proj"},
};
constexpr RoleRow kOutside[] = {
    {Role::embedding, "vocab.embedding"},
    {Role::final_norm, "ln.f"},
    {Role::logits, "lm.head"},
};

}  // namespace

constinit const Convention conventions::tensorrt_llm = {
    .name = "tensorrt_llm",
    .example = "transformer.layers.3.attention.qkv.weight",
    .in_layer = kInLayer,
    .outside = kOutside,
};

}  // namespace tensordiff
