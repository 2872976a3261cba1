#include "tensor/place.h"

#include <array>

namespace tensordiff {
namespace {

constexpr std::array<std::string_view, kRoles> kRoleWords = {
    "embedding",
    "positions",
    "segments",
    "patches",
    "class token",
    "embedding norm",
    "layer input",
    "attention norm",
    "query",
    "key",
    "value",
    "fused qkv",
    "query norm",
    "key norm",
    "value norm",
    "final query",
    "final key",
    "final value",
    "query down",
    "query down norm",
    "query up",
    "kv down",
    "kv down norm",
    "kv up",
    "relative bias",
    "attention",
    "setting",
    "attention output",
    "attention module",
    "norm behind attention",
    "stream behind attention",
    "cross attention norm",
    "cross query",
    "cross key",
    "cross value",
    "cross attention output",
    "ssm in",
    "ssm conv",
    "ssm x",
    "ssm dt",
    "ssm a",
    "ssm d",
    "ssm out",
    "MLP norm",
    "router",
    "gate",
    "up",
    "gate and up",
    "activation",
    "gated activation",
    "MLP output",
    "MLP",
    "norm behind MLP",
    "norm",
    "block output",
    "pooler",
    "final norm",
    "logits",
    "step",
};
static_assert(kRoleWords.back() == "step");

constexpr std::array<std::string_view, 9> kParameterWords = {
    "",       "weight", "bias",      "running_mean", "running_var", "num_batches_tracked",
    "packed", "scale",  "zero_point"};
constexpr std::array<std::string_view, 4> kTowerWords = {"", "encoder", "decoder", "vision"};

}  // namespace

std::string_view name_of(Role role) { return kRoleWords[static_cast<std::size_t>(role)]; }

bool is_norm(Role role) {
  switch (role) {
    case Role::embedding_norm:
    case Role::attention_norm:
    case Role::query_norm:
    case Role::key_norm:
    case Role::value_norm:
    case Role::query_down_norm:
    case Role::kv_down_norm:
    case Role::post_attention_norm:
    case Role::cross_norm:
    case Role::mlp_norm:
    case Role::post_mlp_norm:
    case Role::branch_norm:
    case Role::final_norm:
      return true;
    default:
      return false;
  }
}

std::string_view name_of(Param parameter) {
  return kParameterWords[static_cast<std::size_t>(parameter)];
}

std::string_view name_of(Tower tower) { return kTowerWords[static_cast<std::size_t>(tower)]; }

}  // namespace tensordiff
