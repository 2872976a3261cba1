// In which order the steps of a run were computed, and which of them feed which.
//
// Names give the layer and what a step computes (its role). Hooks fire as steps finish, so the
// order of capture holds where the file has kept it; else that of a transformer layer. What feeds a
// step is known for the roles; else all that came before it in its layer and the last step of the
// layer before do.

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/text.h"
#include "diagnose/fit.h"
#include "diagnose/site.h"

namespace tensordiff {
namespace {

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
    case Role::attention_heads:
      return {{Role::query_final, Role::query, Role::fused_qkv},
              {Role::key_final, Role::key, Role::fused_qkv},
              {Role::value_final, Role::value, Role::fused_qkv}};
    case Role::attention_output:
      return {{Role::attention_heads, Role::query_final, Role::query, Role::fused_qkv},
              {Role::attention_heads, Role::key_final, Role::key, Role::fused_qkv},
              {Role::attention_heads, Role::value_final, Role::value, Role::fused_qkv}};
    case Role::mlp_norm:
      return {{Role::branch_norm, Role::attention_output}};
    case Role::gate:
    case Role::up:
      // Without a norm of its own an MLP reads the one behind attention, or, beside it, its norm.
      return {{Role::mlp_norm, Role::branch_norm, Role::attention_norm}};
    case Role::activation:
      return {{Role::up, Role::gate}};
    case Role::gated:
      return {{Role::up, Role::mlp_norm}, {Role::gate, Role::mlp_norm}};
    case Role::mlp_output:
      return {{Role::gated, Role::activation, Role::up, Role::mlp_norm},
              {Role::gated, Role::up, Role::mlp_norm}};
    case Role::layer_output:
      return {{Role::mlp_output}, {Role::attention_output}};
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
  std::map<std::pair<int64_t, Role>, std::size_t> first;
  for (const Site* step : steps) first.emplace(std::pair(*step->layer, step->role), step->capture);
  for (const Site* step : steps) {
    for (const std::vector<Role>& alternatives : sources_of(step->role)) {
      bool earlier = false, later = false;
      for (const Role role : alternatives) {
        const auto source = first.find({*step->layer, role});
        if (source != first.end()) (source->second > step->capture ? later : earlier) = true;
      }
      // The activation of a gate may be computed before what it is multiplied with.
      if (later && !earlier) return false;
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

// What the last layer before that of a step gave.
void add_last_output(const std::vector<Site>& sites, std::size_t index,
                     std::vector<std::size_t>& in) {
  for (std::size_t i = index; i-- > 0;) {
    if (sites[i].role != Role::layer_output || sites[i].layer == sites[index].layer) continue;
    in.push_back(i);
    return;
  }
}

void add_sources(const std::vector<Site>& sites, std::size_t index, std::vector<std::size_t>& in) {
  const Site& site = sites[index];
  for (const std::vector<Role>& alternatives : sources_of(site.role)) {
    for (const Role role : alternatives) {
      const std::size_t before = in.size();
      for (std::size_t i = index; i-- > 0 && sites[i].layer == site.layer;)
        if (sites[i].role == role) in.push_back(i);
      if (in.size() == before) continue;
      // It may be the norm of what attention adds to the stream, which is read with it.
      if (role == Role::branch_norm) add_last_output(sites, index, in);
      break;
    }
  }
}

// The sites by name, so that those of the modules inside a module stand together.
using Names = std::map<std::string_view, std::size_t>;

// What a module gives is made of what those inside it gave: "layers.0.mlp.down" in "layers.0.mlp".
void add_inner(const std::vector<Site>& sites, const Names& names, std::size_t index,
               std::vector<std::size_t>& in) {
  const std::string inside = sites[index].name_a + '.';
  for (auto it = names.lower_bound(inside); it != names.end() && it->first.starts_with(inside);
       ++it)
    if (it->second < index && sites[it->second].layer == sites[index].layer)
      in.push_back(it->second);
}

void find_inputs(std::vector<Site>& sites) {
  Names names;
  for (std::size_t index = 0; index < sites.size(); ++index)
    if (sites[index].role != Role::setting) names.emplace(sites[index].name_a, index);
  for (std::size_t index = 0; index < sites.size(); ++index) {
    std::vector<std::size_t>& in = sites[index].inputs;
    in.clear();
    if (sites[index].role == Role::setting) continue;
    if (sites[index].layer) add_inner(sites, names, index, in);
    if (in.empty()) add_sources(sites, index, in);
    std::size_t i = index;
    // All of its layer so far, and the last step before that.
    while (in.empty() && i-- > 0) {
      if (sites[i].role == Role::setting || !sites[i].compared()) continue;
      in.push_back(i);
      const bool reads_all =
          sites[index].role == Role::other || sites[index].role == Role::branch_norm;
      if (sites[i].layer == sites[index].layer && reads_all) {
        for (std::size_t k = i; k-- > 0 && sites[k].layer == sites[index].layer;) in.push_back(k);
      }
    }
    std::ranges::sort(in);
    in.erase(std::unique(in.begin(), in.end()), in.end());
  }
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

// How many axes before the last are as long as there are tokens.
std::ptrdiff_t token_axes(const Site& site, uint64_t tokens) {
  const Shape& shape = site.views.a.shape;
  return shape.empty() ? 0 : std::count(shape.begin(), shape.end() - 1, tokens);
}

// How far two steps of one layer are apart where these hold the same but for rotations, if shapes
// tell where the tokens of the first are, and do not for the second.
std::optional<double> split_apart(const Site& flat, const Site& split, const Extent& extent) {
  if (flat.layer != split.layer || !flat.compared() || !split.compared()) return std::nullopt;
  if (token_axes(flat, extent.tokens) != 1 || token_axes(split, extent.tokens) < 2)
    return std::nullopt;
  const Result<Matrix> x = read_matrix(flat.views.a, extent);
  const Result<Matrix> y = read_matrix(split.views.a, extent);
  if (!x.ok() || !y.ok() || !same_form(x.value(), y.value())) return std::nullopt;
  return distance(x.value().values, y.value().values);
}

// Where there are as many heads as tokens, shapes do not tell one axis from the other. Keys and
// values may have fewer heads, and then do; else the values do, as they were before heads had an
// axis.
bool heads_stand_first(const std::vector<Site>& sites, Extent extent) {
  for (const Site& site : sites) {
    const bool may_have_heads = site.role >= Role::query && site.role <= Role::value_final;
    if (!may_have_heads || !site.compared() || token_axes(site, extent.tokens) != 1) continue;
    const TokenView view = by_tokens(site.views.a, extent);
    if (view.heads > 1) return view.order.rbegin()[1] < view.order.rbegin()[2];
  }
  constexpr std::pair<Role, Role> kSplits[] = {{Role::value, Role::value_final},
                                               {Role::key, Role::key_final},
                                               {Role::query, Role::query_final}};
  for (const auto& [before, after] : kSplits) {
    const auto split = std::ranges::find(sites, after, &Site::role);
    const auto flat = std::ranges::find(sites, before, &Site::role);
    if (split == sites.end() || flat == sites.end()) continue;
    extent.heads_first = false;
    const std::optional<double> second = split_apart(*flat, *split, extent);
    extent.heads_first = true;
    const std::optional<double> first = split_apart(*flat, *split, extent);
    if (first && second) return *first < *second;
  }
  return false;
}

}  // namespace

Run make_run(std::vector<Site> sites, const std::vector<std::string>& order) {
  Run run;
  std::size_t weights = 0, layered = 0;
  for (Site& site : sites) {
    if (!site.layer) site.layer = site.place_a.layer_number();
    site.role = role_of(site);
    weights += site.place_a.parameter != Param::none;
    layered += site.layer.has_value();
  }
  run.ends_only = order.empty() && layered == 0 && weights == 0 &&
                  std::ranges::any_of(sites, [](const Site& s) { return s.role == Role::logits; });
  run.activations = !order.empty() || run.ends_only || (layered > 0 && 2 * weights < sites.size());
  if (!order.empty())
    sort_by_names(sites, order);
  else if (run.activations)
    sort_by_roles(sites);
  if (run.activations) {
    find_inputs(sites);
    run.extent = extent_of(sites);
    run.extent.heads_first = heads_stand_first(sites, run.extent);
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
