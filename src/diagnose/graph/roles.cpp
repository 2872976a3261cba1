// What a step computes, as far as its name tells.

#include "diagnose/graph/roles.h"

#include "diagnose/site.h"
#include "naming/naming.h"

namespace tensordiff {

Role computed_at(const Place& place) {
  if (place.parameter != Param::none) return Role::other;
  switch (place.step) {
    case Role::embedding:
    case Role::positions:
      return Role::embedding;
    // Norms of queries and keys are the last that is recorded of them in models without RoPE.
    case Role::query_norm:
      return Role::query_final;
    case Role::key_norm:
      return Role::key_final;
    case Role::mlp:
      return Role::mlp_output;
    case Role::post_attention_norm:
    case Role::post_mlp_norm:
      return Role::branch_norm;
    case Role::attention_norm:
    case Role::query:
    case Role::key:
    case Role::value:
    case Role::fused_qkv:
    case Role::query_final:
    case Role::key_final:
    case Role::value_final:
    case Role::attention_heads:
    case Role::setting:
    case Role::attention_output:
    case Role::mlp_norm:
    case Role::gate:
    case Role::up:
    case Role::activation:
    case Role::gated:
    case Role::mlp_output:
    case Role::layer_output:
    case Role::final_norm:
    case Role::logits:
      return place.step;
    default:
      return Role::other;
  }
}

namespace {

// A setting is one number, or a table of RoPE. What a model computes for each token may be called
// "scaling", too.
Role computed_by(const TensorId& tensor) {
  const Role role = computed_at(tensor.place);
  if (role != Role::setting) return role;
  uint64_t elements = 1;
  for (const uint64_t size : tensor.shape) elements *= size;
  const bool table = tensor.name.find("rot") != std::string::npos;
  return elements == 1 || table ? role : Role::other;
}

}  // namespace

Role role_of(const Site& site) {
  const Role a = computed_by(site.a), b = computed_by(site.b);
  // A part of a fused tensor is what the other side calls it.
  if (a == Role::fused_qkv && b != Role::other) return b;
  if (a != Role::other) return a;
  if (b != Role::other) return b;
  return computed_at(read_place(site.stage));
}

}  // namespace tensordiff
