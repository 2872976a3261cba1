// What a step computes, as far as its name tells.

#include "diagnose/roles.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "base/text.h"
#include "match/canonical.h"

namespace tensordiff {
namespace {

struct RoleName {
  std::string_view ending;  // Of the name, at a word's border, lower case.
  Role role;
};

// The first that fits counts: endings with more words before those with fewer.
constexpr auto kRoleNames = std::to_array<RoleName>({
    {"post_ln_pre_attn", Role::attention_norm},
    {"query_final", Role::query_final},
    {"key_final", Role::key_final},
    {"value_final", Role::value_final},
    {"post_attn_pre_resid", Role::attention_output},
    {"post_attn", Role::attention},
    {"scaling", Role::setting},
    {"sliding", Role::setting},
    {"pre_mlp", Role::mlp_norm},
    {"post_mlp", Role::mlp_output},
    {"input_layernorm", Role::attention_norm},
    {"attention_norm", Role::attention_norm},
    {"attn_norm", Role::attention_norm},
    {"ln_1", Role::attention_norm},
    {"ln1", Role::attention_norm},
    {"norm1", Role::attention_norm},
    {"attention.output.layernorm", Role::branch_norm},
    {"output.layernorm", Role::branch_norm},
    {"sa_layer_norm", Role::branch_norm},
    {"output_layer_norm", Role::branch_norm},
    {"post_feedforward_layernorm", Role::branch_norm},
    {"pre_feedforward_layernorm", Role::mlp_norm},
    {"post_attention_layernorm", Role::mlp_norm},
    {"mlp_norm", Role::mlp_norm},
    {"ffn_norm", Role::mlp_norm},
    {"ln_2", Role::mlp_norm},
    {"ln2", Role::mlp_norm},
    {"norm2", Role::mlp_norm},
    {"q_norm", Role::query_final},
    {"k_norm", Role::key_final},
    {"q_rot", Role::query_final},
    {"k_rot", Role::key_final},
    {"q_rope", Role::query_final},
    {"k_rope", Role::key_final},
    {"q_embed", Role::query_final},
    {"k_embed", Role::key_final},
    {"attn.c_attn", Role::fused_qkv},
    {"qkv_proj", Role::fused_qkv},
    {"query_key_value", Role::fused_qkv},
    {"qkv", Role::fused_qkv},
    {"q_proj", Role::query},
    {"k_proj", Role::key},
    {"v_proj", Role::value},
    {"query", Role::query},
    {"key", Role::key},
    {"value", Role::value},
    {"q", Role::query},
    {"k", Role::key},
    {"v", Role::value},
    {"heads_out", Role::attention},
    {"attention.self", Role::attention},
    {"attn_heads", Role::attention},
    {"attn.c_proj", Role::attention_output},
    {"attn_out", Role::attention_output},
    {"o_proj", Role::attention_output},
    {"out_proj", Role::attention_output},
    {"gate_proj", Role::gate},
    {"mlp_gate", Role::gate},
    {"mlp.c_fc", Role::up},
    {"up_proj", Role::up},
    {"mlp_up", Role::up},
    {"act_fn", Role::activation},
    {"mlp_act", Role::activation},
    {"act", Role::activation},
    {"mlp.c_proj", Role::mlp_output},
    {"down_proj", Role::mlp_output},
    {"mlp_out", Role::mlp_output},
    {"mlp", Role::mlp_output},
    {"block_sparse_moe", Role::mlp_output},
    {"moe", Role::mlp_output},
    {"attention.output", Role::other},  // A module with a norm inside, not the block's own.
    {"output", Role::block_output},
    {"wte", Role::embedding},
    {"wpe", Role::embedding},
    {"embed_tokens", Role::embedding},
    {"embed.tokens", Role::embedding},
    {"embed.positions", Role::embedding},
    {"embeddings", Role::embedding},
    {"ln_f", Role::final_norm},
    {"final_norm", Role::final_norm},
    {"lm_head", Role::logits},
    {"logits", Role::logits},
});

constexpr std::string_view kRoleWords[] = {
    "embedding",    "attention norm", "query",       "key",        "value",      "fused qkv",
    "final query",  "final key",      "final value", "attention",  "setting",    "attention output",
    "MLP norm",     "gate",           "up",          "activation", "MLP output", "norm",
    "block output", "final norm",     "logits",      "step"};

// What the tables of pairing know of a name; nothing where they do not know it.
std::optional<Role> conventional_role(std::string_view name) {
  constexpr std::pair<std::string_view, Role> kRoles[] = {
      {"attn_norm", Role::attention_norm},
      {"q", Role::query},
      {"k", Role::key},
      {"v", Role::value},
      {"qkv", Role::fused_qkv},
      {"attn_heads", Role::attention},
      {"attn_out", Role::attention_output},
      {"mlp_norm", Role::mlp_norm},
      {"gate", Role::gate},
      {"up", Role::up},
      {"act", Role::activation},
      {"down", Role::mlp_output},
      {"mlp", Role::mlp_output},
      {"output", Role::block_output},
      {"tokens", Role::embedding},
      {"positions", Role::embedding},
      {"final_norm", Role::final_norm},
      {"head", Role::logits},
  };
  const std::optional<CanonicalName> known = canonical_name(name);
  if (!known || !known->parameter.empty()) return std::nullopt;
  for (const auto& [spelling, role] : kRoles)
    if (known->role == spelling) return role;
  return Role::other;
}

std::optional<Role> role_named(std::string_view name) {
  const std::string plain = lower(bare(name));
  for (const RoleName& row : kRoleNames)
    if (ends_with_word(plain, row.ending)) return row.role;
  // The name of a layer itself: what its block gives.
  const std::size_t dot = plain.rfind('.');
  const bool numbered =
      dot != std::string::npos && all_digits(std::string_view(plain).substr(dot + 1));
  return numbered ? Role::block_output : conventional_role(plain);
}

}  // namespace

bool ends_with_word(std::string_view name, std::string_view ending) {
  if (!name.ends_with(ending)) return false;
  if (name.size() == ending.size()) return true;
  const char before = name[name.size() - ending.size() - 1];
  return before == '.' || before == '/' || before == '_';
}

std::string_view bare(std::string_view name) { return name.substr(0, name.find_first_of("[ ")); }

std::string_view name_of(Role role) { return kRoleWords[static_cast<std::size_t>(role)]; }

Role role_of(const Site& site) {
  const std::optional<Role> a = role_named(site.name_a), b = role_named(site.name_b);
  // A part of a fused tensor is what the other side calls it.
  if (a == Role::fused_qkv && b) return *b;
  if (a || b) return a ? *a : *b;
  return role_named(site.stage).value_or(Role::other);
}

// Where a layer has norms named for standing before or behind the MLP, the one named for standing
// behind attention does just that.
void settle_norms(std::vector<Site>& sites) {
  const auto named = [](const Site& site, std::string_view ending) {
    return ends_with_word(lower(bare(site.name_a)), ending);
  };
  const bool both = std::ranges::any_of(sites, [&](const Site& site) {
    return named(site, "pre_feedforward_layernorm") || named(site, "post_feedforward_layernorm");
  });
  for (Site& site : sites)
    if (both && named(site, "post_attention_layernorm")) site.role = Role::branch_norm;
}

}  // namespace tensordiff
