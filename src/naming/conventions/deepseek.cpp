// Attention with low ranks, as of DeepSeek: queries and keys come from a small vector.

#include "naming/convention.h"

namespace tensordiff {
namespace {

constexpr RoleRow kInLayer[] = {
    {Role::query_down, "self.attn.q.a.proj attn.q.a"},
    {Role::query_down_norm, "self.attn.q.a.layernorm attn.q.a.norm"},
    {Role::query_up, "self.attn.q.b.proj attn.q.b"},
    {Role::kv_down, "self.attn.kv.a.proj.with.mqa attn.kv.a.mqa"},
    {Role::kv_down_norm, "self.attn.kv.a.layernorm attn.kv.a.norm"},
    {Role::kv_up, "self.attn.kv.b.proj attn.kv.b"},
};

}  // namespace

constinit const Convention conventions::deepseek = {
    .name = "deepseek",
    .example = "model.layers.3.self_attn.kv_a_proj_with_mqa.weight",
    .in_layer = kInLayer,
};

}  // namespace tensordiff
