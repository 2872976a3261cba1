// In which order the steps of a run were computed, and which of them feed which.
//
// Names give the layer and what a step computes (its role). Hooks fire as steps finish, so the
// order of capture holds where the file has kept it; else that of a transformer layer. What feeds a
// step is known for the roles; else all that came before it in its layer and the last step of the
// layer before do.

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "base/text.h"
#include "diagnose/site.h"
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
    "embedding",   "attention norm", "query",       "key",        "value",      "fused qkv",
    "final query", "final key",      "final value", "attention",  "setting",    "attention output",
    "MLP norm",    "gate",           "up",          "activation", "MLP output", "block output",
    "final norm",  "logits",         "step"};

bool ends_with_word(std::string_view name, std::string_view ending) {
  if (!name.ends_with(ending)) return false;
  if (name.size() == ending.size()) return true;
  const char before = name[name.size() - ending.size() - 1];
  return before == '.' || before == '/' || before == '_';
}

// Without what pairing put behind it: "c_attn[0:96]", "c_attn [q]".
std::string_view bare(std::string_view name) { return name.substr(0, name.find_first_of("[ ")); }

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

// What feeds a step of this role, each as alternatives of which the first that is there counts.
std::vector<std::vector<Role>> sources_of(Role role) {
  switch (role) {
    case Role::query:
    case Role::key:
    case Role::value:
    case Role::fused_qkv:
      return {{Role::attention_norm}};
    case Role::query_final:
      return {{Role::query, Role::fused_qkv}};
    case Role::key_final:
      return {{Role::key, Role::fused_qkv}};
    case Role::value_final:
      return {{Role::value, Role::fused_qkv}};
    case Role::attention:
      return {{Role::query_final, Role::query, Role::fused_qkv},
              {Role::key_final, Role::key, Role::fused_qkv},
              {Role::value_final, Role::value, Role::fused_qkv}};
    case Role::attention_output:
      return {{Role::attention}};
    case Role::mlp_norm:
      return {{Role::attention_output}};
    case Role::gate:
    case Role::up:
      return {{Role::mlp_norm}};
    case Role::activation:
      return {{Role::up, Role::gate}};
    case Role::mlp_output:
      return {{Role::activation, Role::up, Role::mlp_norm}, {Role::up, Role::mlp_norm}};
    case Role::block_output:
      return {{Role::mlp_output}};
    default:
      return {};
  }
}

// 0 before the layers, 1 in them, 2 after them.
int phase_of(const Site& site, std::size_t first_layered) {
  if (site.layer) return 1;
  if (site.role == Role::final_norm || site.role == Role::logits) return 2;
  if (site.role == Role::embedding) return 0;
  return site.capture < first_layered ? 0 : 2;
}

// Whether the file of a has its steps as they were computed: layer after layer, nothing before what
// feeds it, and not merely in the order of the alphabet.
bool captured_in_order(const std::vector<Site>& sites) {
  std::vector<const Site*> steps;
  for (const Site& site : sites)
    if (site.layer) steps.push_back(&site);
  std::ranges::sort(steps, {}, &Site::capture);
  if (!std::ranges::is_sorted(steps, {}, &Site::layer)) return false;
  if (std::ranges::is_sorted(steps, {}, &Site::name_a)) return false;
  std::map<std::pair<int64_t, Role>, std::size_t> last;
  for (const Site* step : steps) last[{*step->layer, step->role}] = step->capture;
  for (const Site* step : steps) {
    for (const std::vector<Role>& alternatives : sources_of(step->role)) {
      for (const Role role : alternatives) {
        const auto source = last.find({*step->layer, role});
        if (source != last.end() && source->second > step->capture) return false;
      }
    }
  }
  return true;
}

void sort_by_roles(std::vector<Site>& sites) {
  std::size_t first_layered = sites.size();
  for (const Site& site : sites)
    if (site.layer) first_layered = std::min(first_layered, site.capture);
  const bool as_captured = captured_in_order(sites);
  std::ranges::stable_sort(sites, {}, [&](const Site& site) {
    const int phase = phase_of(site, first_layered);
    const int rank = phase == 1 && as_captured ? 0 : static_cast<int>(site.role);
    return std::tuple(phase, site.layer.value_or(0), rank, site.capture);
  });
}

void sort_by_names(std::vector<Site>& sites, const std::vector<std::string>& order) {
  std::map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < order.size(); ++i) places.emplace(order[i], i);
  std::ranges::stable_sort(sites, {}, [&](const Site& site) {
    const auto place = places.find(site.name_a);
    return place == places.end() ? order.size() : place->second;
  });
}

void add_sources(const std::vector<Site>& sites, std::size_t index, std::vector<std::size_t>& in) {
  const Site& site = sites[index];
  for (const std::vector<Role>& alternatives : sources_of(site.role)) {
    for (const Role role : alternatives) {
      const std::size_t before = in.size();
      for (std::size_t i = index; i-- > 0 && sites[i].layer == site.layer;)
        if (sites[i].role == role) in.push_back(i);
      if (in.size() > before) break;
    }
  }
}

void find_inputs(std::vector<Site>& sites) {
  for (std::size_t index = 0; index < sites.size(); ++index) {
    std::vector<std::size_t>& in = sites[index].inputs;
    in.clear();
    if (sites[index].role == Role::setting) continue;
    add_sources(sites, index, in);
    std::size_t i = index;
    // All of its layer so far, and the last step before that.
    while (in.empty() && i-- > 0) {
      if (sites[i].role == Role::setting || !sites[i].compared()) continue;
      in.push_back(i);
      if (sites[i].layer == sites[index].layer && sites[index].role == Role::other) {
        for (std::size_t k = i; k-- > 0 && sites[k].layer == sites[index].layer;) in.push_back(k);
      }
    }
    std::ranges::sort(in);
    in.erase(std::unique(in.begin(), in.end()), in.end());
  }
}

bool names_a_weight(std::string_view name) {
  for (const std::string_view ending : {"weight", "bias", "scales", "qweight", "running_mean"})
    if (ends_with_word(name, ending)) return true;
  return false;
}

// Tensors that have tokens, with the axis of these. An embedding of positions has no batch, and
// says nothing of the others.
template <class Visit>
void for_each_of_tokens(const std::vector<Site>& sites, uint64_t tokens, const Visit& visit) {
  for (const Site& site : sites) {
    const Shape& shape = site.views.a.shape;
    const auto axis = std::ranges::find(shape, tokens);
    const bool has = axis != shape.end() && axis + 1 != shape.end();
    if (site.compared() && has && site.role != Role::embedding)
      visit(site, static_cast<std::size_t>(axis - shape.begin()));
  }
}

// The smallest product of what stands before the tokens. Where these stand first in all tensors,
// what they all have behind them; in queries and the like that may be heads.
uint64_t batch_of(const std::vector<Site>& sites, uint64_t tokens) {
  std::set<uint64_t> before, behind;
  for_each_of_tokens(sites, tokens, [&](const Site& site, std::size_t axis) {
    const Shape& shape = site.views.a.shape;
    uint64_t product = 1;
    for (std::size_t i = 0; i < axis; ++i) product *= shape[i];
    before.insert(product);
    const bool may_have_heads = site.role >= Role::query && site.role <= Role::value_final;
    if (!may_have_heads) behind.insert(axis == 0 && shape.size() > 2 ? shape[1] : 0);
  });
  if (behind.size() == 1 && *behind.begin() > 0) return *behind.begin();
  return before.empty() ? 1 : *before.begin();
}

// The number of tokens is the largest size that nearly every tensor has before its last axis.
Extent extent_of(const std::vector<Site>& sites) {
  std::map<uint64_t, std::size_t> seen;
  std::size_t tensors = 0;
  for (const Site& site : sites) {
    const Shape& shape = site.views.a.shape;
    if (!site.compared() || shape.size() < 2) continue;
    ++tensors;
    for (const uint64_t size : std::set<uint64_t>(shape.begin(), shape.end() - 1)) ++seen[size];
  }
  Extent extent;
  for (const auto& [size, count] : seen)
    if (size > 1 && count * 10 >= tensors * 9) extent.tokens = size;
  extent.batch = batch_of(sites, extent.tokens);
  return extent;
}

// Where a layer has a norm named for standing before the MLP, the one named for standing behind
// attention is not it.
void settle_norms(std::vector<Site>& sites) {
  const auto named = [](const Site& site, std::string_view ending) {
    return ends_with_word(lower(bare(site.name_a)), ending);
  };
  const bool both = std::ranges::any_of(
      sites, [&](const Site& site) { return named(site, "pre_feedforward_layernorm"); });
  for (Site& site : sites)
    if (both && named(site, "post_attention_layernorm")) site.role = Role::other;
}

}  // namespace

std::string_view name_of(Role role) { return kRoleWords[static_cast<std::size_t>(role)]; }

std::optional<int64_t> layer_in(std::string_view name) {
  for (const std::string_view path : split(name, '/')) {
    for (const std::string_view word : split(path, '.')) {
      const std::string_view number = word.substr(0, word.find('_'));
      if (number.empty() || number.size() > 9 || !all_digits(number)) continue;
      return std::stoll(std::string(number));
    }
  }
  return std::nullopt;
}

Role role_of(const Site& site) {
  const std::optional<Role> a = role_named(site.name_a), b = role_named(site.name_b);
  // A part of a fused tensor is what the other side calls it.
  if (a == Role::fused_qkv && b) return *b;
  if (a || b) return a ? *a : *b;
  return role_named(site.stage).value_or(Role::other);
}

Run make_run(std::vector<Site> sites, const std::vector<std::string>& order) {
  Run run;
  std::size_t weights = 0, layered = 0;
  for (Site& site : sites) {
    if (!site.layer) site.layer = layer_in(site.name_a);
    site.role = role_of(site);
    weights += names_a_weight(bare(site.name_a));
    layered += site.layer.has_value();
  }
  settle_norms(sites);
  run.activations = !order.empty() || (layered > 0 && 2 * weights < sites.size());
  if (!order.empty())
    sort_by_names(sites, order);
  else if (run.activations)
    sort_by_roles(sites);
  if (run.activations) {
    find_inputs(sites);
    run.extent = extent_of(sites);
  }
  run.sites = std::move(sites);
  return run;
}

const Site* find_role(const Run& run, const Site& near, Role role) {
  for (const Site& site : run.sites)
    if (site.role == role && site.layer == near.layer && site.compared()) return &site;
  return nullptr;
}

}  // namespace tensordiff
