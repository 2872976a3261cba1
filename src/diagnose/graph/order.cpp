// In which order the steps of a run were computed.
//
// Hooks fire as modules finish, so the order of capture holds where a file has kept it: nothing
// stands before what it contains. Where there are no containers, layers must ascend and no role may
// stand before what feeds it. Else that of a transformer layer holds.

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <tuple>

#include "base/text.h"
#include "diagnose/graph/edges.h"
#include "diagnose/graph/extent.h"
#include "diagnose/graph/last_calls.h"
#include "diagnose/graph/made_of.h"
#include "diagnose/graph/module_tree.h"
#include "diagnose/site.h"

namespace tensordiff {
namespace {

// The share of names that must agree with an order. That of the alphabet, which knows nothing of
// it, gets half of them right; some names mean something else, and some modules are called again
// later.
constexpr double kInOrder = 0.75;

// 0 before the layers, 1 in them or between them, 2 after them.
int phase_of(const Site& site, std::size_t first_layered, std::size_t last_layered) {
  if (site.block) return 1;
  if (site.role == Role::final_norm || site.role == Role::logits) return 2;
  if (site.role == Role::embedding) return 0;
  if (site.capture < first_layered) return 0;
  return site.capture < last_layered ? 1 : 2;
}

// Whether containers stand behind what they contain; nothing where there are none.
std::optional<bool> containers_behind(const std::vector<Site>& sites, std::size_t Site::*capture) {
  const ModuleTree tree(sites);
  double behind = 0, all = 0;
  for (std::size_t i = 0; i < sites.size(); ++i) {
    std::size_t at = tree[tree.module_of(i)].parent;
    while (at != Module::kRoot && tree[at].outputs.empty()) at = tree[at].parent;
    if (at == Module::kRoot) continue;
    all += 1;
    behind += sites[i].*capture < sites[tree[at].outputs[0]].*capture;
  }
  return all == 0 ? std::nullopt : std::optional(behind >= kInOrder * all);
}

// Whether steps stand behind what feeds them.
bool feeds_in_order(const std::vector<const Site*>& steps, std::size_t Site::*capture) {
  std::map<std::pair<int64_t, Role>, std::size_t> first;
  for (const Site* step : steps) {
    const auto at = first.emplace(std::pair(*step->block, step->role), step->*capture).first;
    at->second = std::min(at->second, step->*capture);
  }
  double in_order = 0, all = 0;
  for (const Site* step : steps) {
    for (const std::vector<Role>& alternatives : sources_of(step->role)) {
      bool earlier = false, later = false;
      for (const Role role : alternatives) {
        const auto source = first.find({*step->block, role});
        if (source != first.end()) (source->second > step->*capture ? later : earlier) = true;
      }
      // The activation of a gate may be computed before what it is multiplied with.
      in_order += earlier;
      all += earlier || later;
    }
  }
  return in_order >= kInOrder * all;
}

// Whether a file has its steps in the order of the alphabet, which is not that of computing: some
// stand in front of what feeds them.
bool is_alphabetical(const std::vector<Site>& sites, std::size_t Site::*capture) {
  constexpr std::size_t kFew = 20;  // Parts of fused tensors, and numbers: one in so many.
  std::vector<const Site*> steps;
  for (const Site& site : sites)
    if (site.block) steps.push_back(&site);
  std::ranges::sort(steps, {}, capture);
  const auto name = [&](std::size_t i) -> const std::string& {
    return capture == &Site::capture ? steps[i]->a.name : steps[i]->b.name;
  };
  std::size_t back = 0;
  for (std::size_t i = 1; i < steps.size(); ++i) back += name(i) < name(i - 1);
  return kFew * back <= steps.size() && !feeds_in_order(steps, capture);
}

// Whether the file of A has its steps as they were computed: in each list layer after layer,
// nothing before what feeds it, and not merely in the order of the alphabet.
bool captured_in_order(const std::vector<Site>& sites) {
  std::vector<const Site*> steps;
  for (const Site& site : sites)
    if (site.block) steps.push_back(&site);
  std::ranges::sort(steps, {}, &Site::capture);
  const auto name = [](const Site* site) -> const std::string& { return site->a.name; };
  if (std::ranges::is_sorted(steps, {}, name)) return false;
  std::map<std::size_t, int64_t> last;  // Of each list.
  for (const Site* step : steps) {
    const auto [block, fresh] = last.try_emplace(step->list, *step->block);
    if (*step->block < block->second) return false;
    block->second = *step->block;
  }
  return feeds_in_order(steps, &Site::capture);
}

void sort_by_roles(std::vector<Site>& sites) {
  std::size_t first_layered = SIZE_MAX, last_layered = 0;
  for (const Site& site : sites) {
    if (!site.block) continue;
    first_layered = std::min(first_layered, site.capture);
    last_layered = std::max(last_layered, site.capture);
  }
  const bool as_captured = captured_in_order(sites);
  std::ranges::stable_sort(sites, {}, [&](const Site& site) {
    const int phase = phase_of(site, first_layered, as_captured ? last_layered : 0);
    const int rank = phase == 1 && as_captured ? 0 : static_cast<int>(site.role);
    // Steps between blocks, such as those between the stages of a network, are where they were.
    const int64_t block = as_captured ? 0 : site.block.value_or(0);
    return std::tuple(phase, block, rank, site.capture);
  });
}

// Whether what ends a model stands in front of all layers: "lm_head" before "transformer.h.0", as
// the alphabet has it.
bool starts_with_the_end(const std::vector<Site>& sites, std::size_t Site::*capture) {
  std::size_t layers = SIZE_MAX, end = SIZE_MAX;
  for (const Site& site : sites) {
    if (site.block) layers = std::min(layers, site.*capture);
    const bool ends = site.role == Role::logits || site.role == Role::final_norm;
    if (!site.block && ends) end = std::min(end, site.*capture);
  }
  return layers != SIZE_MAX && end < layers;
}

// By the file of either side that has kept the order. Says whether one has.
bool sort_by_capture(std::vector<Site>& sites) {
  for (const auto capture : {&Site::capture, &Site::capture_b}) {
    if (containers_behind(sites, capture) != true) continue;
    if (starts_with_the_end(sites, capture) || is_alphabetical(sites, capture)) continue;
    std::ranges::stable_sort(sites, {}, capture);
    move_last_calls(sites);
    return true;
  }
  return false;
}

void sort_by_names(std::vector<Site>& sites, const std::vector<std::string>& order) {
  std::map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < order.size(); ++i) places.emplace(order[i], i);
  std::ranges::stable_sort(sites, {}, [&](const Site& site) {
    const auto place = places.find(site.a.name);
    return place == places.end() ? order.size() : place->second;
  });
}

}  // namespace

namespace {

std::pair<Role, std::optional<int64_t>> place_of(const Site& site) {
  return {site.role, site.block};
}

}  // namespace

Run make_run(std::vector<Site> sites, const std::vector<std::string>& order) {
  Run run;
  std::size_t weights = 0, layered = 0;
  for (Site& site : sites) {
    if (!site.layer) site.layer = site.a.place.layer_number();
    site.role = role_of(site);
    weights += site.a.place.parameter != Param::none;
    layered += site.layer.has_value();
  }
  number_blocks(sites);
  const bool ordered = layered > 0 || containers_behind(sites, &Site::capture) == true;
  run.ends_only = order.empty() && !ordered && weights == 0 &&
                  std::ranges::any_of(sites, [](const Site& s) { return s.role == Role::logits; });
  run.activations = !order.empty() || run.ends_only || (ordered && 2 * weights < sites.size());
  if (!order.empty())
    sort_by_names(sites, order);
  else if (run.activations && !sort_by_capture(sites))
    sort_by_roles(sites);
  if (run.activations) {
    number_blocks(sites);
    find_copies(sites);
    find_made_of(sites);
    find_inputs(sites);
    run.extent = extent_of(sites);
  }
  run.sites = std::move(sites);
  run.by_role.resize(run.sites.size());
  std::iota(run.by_role.begin(), run.by_role.end(), std::size_t{0});
  std::ranges::stable_sort(run.by_role, {}, [&](std::size_t i) { return place_of(run.sites[i]); });
  return run;
}

const Site* as_read_by(const Run& run, const Site* source, const Site& reader) {
  if (!source) return nullptr;
  const std::span<const Site> sites = run.sites;
  const auto behind = sites.subspan(static_cast<std::size_t>(source - sites.data()));
  const std::less<const Site*> before;
  if (!before(&reader, sites.data()) && before(&reader, source)) return source;
  for (const Site& site : behind) {  // A copy stands behind what it is a copy of.
    if (&site == &reader) break;
    if (site.compared() && site.copy_of && &run.sites[*site.copy_of] == source) source = &site;
  }
  return source;
}

std::vector<const Site*> sites_of(const Run& run, Role role, std::optional<int64_t> block) {
  std::vector<const Site*> found;
  const auto wanted = std::pair(role, block);
  if (run.by_role.size() != run.sites.size()) {  // Sites were put together by hand.
    for (const Site& site : run.sites)
      if (place_of(site) == wanted) found.push_back(&site);
    return found;
  }
  const auto place = [&](std::size_t i) { return place_of(run.sites[i]); };
  auto at = std::ranges::lower_bound(run.by_role, wanted, {}, place);
  for (; at != run.by_role.end() && place(*at) == wanted; ++at) found.push_back(&run.sites[*at]);
  return found;
}

const Site* find_role(const Run& run, const Site& near, Role role) {
  for (const Site* site : sites_of(run, role, near.block))
    if (site->compared() && !site->aside) return as_read_by(run, site, near);
  return nullptr;
}

}  // namespace tensordiff
