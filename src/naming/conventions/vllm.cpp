// Modules that vLLM and sglang have in place of those of Hugging Face.

#include "naming/convention.h"

namespace tensordiff {
namespace {

constexpr RoleRow kInLayer[] = {
    {Role::fused_qkv, "self.attn.qkv.proj attn.qkv.proj attention.qkv.proj"},
    {Role::attention_heads, "self.attn.attn attention.attn"},
    {Role::gate_up, "mlp.gate.up.proj"},
    {Role::router, "moe.gate moe.router"},
    {Role::gate, "moe.w1"},
    {Role::mlp_output, "moe.w2"},
    {Role::up, "moe.w3"},
    {Role::gate_up, "moe.w13"},
    {Role::mlp, "moe"},
};
constexpr RoleRow kOutside[] = {{Role::logits, "logits.processor"}};
constexpr RoleRow kEndings[] = {{Role::mlp, "moe"}};

}  // namespace

constinit const Convention conventions::vllm = {
    .name = "vllm",
    .example = "model.layers.3.self_attn.qkv_proj.weight",
    .in_layer = kInLayer,
    .outside = kOutside,
    .endings = kEndings,
};

}  // namespace tensordiff
