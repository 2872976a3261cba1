// A step reads what was computed before it; names and values tell how much of that.
//
// Without more knowledge a step may read what came before it in each module that it is in: the
// outputs of earlier modules, of which those inside no longer count. Of a list of layers the last
// one stands for those before. A container reads what is inside it. Where A's values show how a
// step is made of earlier ones, these are what it reads. Where the roles of a transformer are
// known, they narrow this down.

#include "diagnose/graph/edges.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "diagnose/graph/module_tree.h"
#include "diagnose/verdict/carried.h"
#include "dumps/grammar.h"

namespace tensordiff {

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
      // The activation of a gate need not be a module.
      return {{Role::gated, Role::activation, Role::gate, Role::up, Role::mlp_norm},
              {Role::gated, Role::up, Role::mlp_norm}};
    case Role::layer_output:
      return {{Role::mlp_output}, {Role::attention_output}};
    default:
      return {};
  }
}

namespace {

// The steps that read what the residual stream has at that point: all that was added to it before.
bool reads_stream(Role role) { return is_norm(role) || role == Role::layer_output; }

// The steps that turn queries and keys, or read what nobody dumped after it was turned.
bool turns(Role role) {
  return role == Role::query_final || role == Role::key_final || role == Role::attention_heads ||
         role == Role::attention_output;
}

class Edges {
 public:
  explicit Edges(std::vector<Site>& sites) : sites_(sites), tree_(sites) {
    for (std::size_t i = 0; i < sites.size(); ++i) {
      if (!sites[i].aside) by_role_[{sites[i].block, sites[i].role}].push_back(i);
      if (sites[i].role == Role::layer_output && !sites[i].aside) outputs_.push_back(i);
      if (counts(i) && is_rope_module(tree_[table_of(i)].path)) tables_.push_back(i);
      if (sites[i].copy_of) copies_[*sites[i].copy_of] = i;
      note_first(i);
    }
  }

  std::vector<std::size_t> inputs_of(std::size_t index) const {
    std::vector<std::size_t> in;
    if (sites_[index].role == Role::setting) return in;
    if (const std::optional<MadeOf>& made_of = sites_[index].made_of; is_told(made_of)) {
      in = made_of->terms;
      if (made_of->factor) in.push_back(*made_of->factor);
      std::ranges::sort(in);
      return in;
    }
    const std::size_t module = tree_.module_of(index);
    for (const std::size_t inner : tree_[module].inside) add_outputs(inner, index, in);
    if (in.empty() && sites_[index].a.place.staged) add_sources(index, in);
    if (in.empty() && !reads_stream(sites_[index].role) && has_sources(index))
      add_sources(index, in);
    if (in.empty() || !tree_[module].inside.empty())
      add_before(module, index, in);
    else if (turns(sites_[index].role))
      add_tables(index, in);
    std::ranges::sort(in);
    in.erase(std::unique(in.begin(), in.end()), in.end());
    return in;
  }

 private:
  // What a module gave before a step. Of one that was not dumped itself, what its last part gave,
  // and those before where that only holds what is elsewhere, too; of a list all, as of experts.
  void add_outputs(std::size_t module, std::size_t before, std::vector<std::size_t>& in) const {
    if (begins_after(module, before)) return;
    const std::size_t had = in.size();
    for (const std::size_t site : tree_[module].outputs)
      if (site < before && counts(site)) in.push_back(site);
    if (in.size() > had) return;
    const std::vector<std::size_t>& inside = tree_[module].inside;
    for (std::size_t i = inside.size(); i-- > 0;) {
      const std::size_t last = in.size();
      add_outputs(inside[i], before, in);
      const bool own = std::any_of(in.begin() + static_cast<std::ptrdiff_t>(last), in.end(),
                                   [&](std::size_t site) { return !sites_[site].copy_of; });
      if (own && !tree_[inside[i]].repeated && !is_tuple(inside[i])) return;
    }
  }

  // The site that comes first in a module and in all around it.
  void note_first(std::size_t site) {
    for (std::size_t module = tree_.module_of(site);; module = tree_[module].parent) {
      if (module >= first_.size()) first_.resize(module + 1, SIZE_MAX);
      if (first_[module] <= site) return;  // Then so it is in all around it.
      first_[module] = site;
      if (module == Module::kRoot) return;
    }
  }

  // Whether nothing in a module comes before a step: of thousands of layers, that is half of them.
  bool begins_after(std::size_t module, std::size_t before) const {
    return module >= first_.size() || first_[module] >= before;
  }

  // Whether all that is inside are numbers, as in the caches that a model gives beside its output.
  bool is_tuple(std::size_t module) const {
    const std::vector<std::size_t>& inside = tree_[module].inside;
    return tree_[module].outputs.empty() && std::ranges::all_of(inside, [&](std::size_t inner) {
             const bool item = tree_[inner].number && tree_[inner].stem.empty();
             return item && (tree_[inner].inside.empty() || is_tuple(inner));
           });
  }

  // What was computed before a module, in each of those that contain it.
  void add_before(std::size_t module, std::size_t before, std::vector<std::size_t>& in) const {
    for (; module != Module::kRoot; module = tree_[module].parent) {
      std::optional<std::size_t> last;  // Of the list that the module is in.
      for (const std::size_t other : tree_[tree_[module].parent].inside) {
        if (other == module || begins_after(other, before)) continue;
        const bool listed = tree_[other].repeated && tree_[module].repeated &&
                            tree_[other].stem == tree_[module].stem;
        // What has a higher number comes later, unless two lists take turns: convs1.0, convs2.0,
        // convs1.1.
        if (!listed || *tree_[other].number > *tree_[module].number)
          add_outputs(other, before, in);
        else if (!last || *tree_[other].number > *tree_[*last].number)
          last = other;
      }
      if (last) add_outputs(*last, before, in);
    }
  }

  // RoPE's tables of a module around a step: a model computes them once for all its layers.
  void add_tables(std::size_t index, std::vector<std::size_t>& in) const {
    for (const std::size_t i : tables_)
      if (i < index && tree_.contains(tree_[table_of(i)].parent, tree_.module_of(index)))
        in.push_back(i);
  }

  // The module of a site, or the one whose tuple it is in.
  std::size_t table_of(std::size_t site) const {
    const std::size_t module = tree_.module_of(site);
    return tree_[module].number && tree_[module].stem.empty() ? tree_[module].parent : module;
  }

  // Whether roles may be believed: all that the step reads is there, and between that and the step
  // there is no other norm, and nothing unknown, but for what is in the same branch of the block as
  // the step.
  bool has_sources(std::size_t index) const {
    std::vector<std::size_t> in;
    if (!add_sources(index, in) || in.empty()) return false;
    const std::size_t parent = tree_[tree_.module_of(index)].parent;
    const bool of_one_branch = parent != Module::kRoot && !tree_[parent].repeated;
    for (std::size_t i = std::ranges::max(in) + 1; i < index; ++i) {
      if (of_one_branch && tree_.contains(parent, tree_.module_of(i))) continue;
      const Role step = sites_[i].a.place.step;
      if (is_norm(step) || step == Role::other) return false;
    }
    return true;
  }

  // Says whether there is one of each that a step of its role reads.
  bool add_sources(std::size_t index, std::vector<std::size_t>& in) const {
    const Site& site = sites_[index];
    bool all = true;
    for (const std::vector<Role>& alternatives : sources_of(site.role)) {
      const std::size_t had = in.size();
      for (const Role role : alternatives) {
        const std::size_t before = in.size();
        if (const auto known = by_role_.find({site.block, role}); known != by_role_.end())
          for (const std::size_t i : known->second)
            if (i < index) add_with_copies(i, index, in);
        if (in.size() == before) continue;
        // It may be the norm of what attention adds to the stream, which is read with it.
        if (role == Role::branch_norm) add_last_output(index, in);
        break;
      }
      all = all && in.size() > had;
    }
    return all;
  }

  // What stands behind a source and holds the same in A is read in its place, as dropout at rest.
  void add_with_copies(std::size_t source, std::size_t index, std::vector<std::size_t>& in) const {
    in.push_back(source);
    for (auto copy = copies_.find(source); copy != copies_.end() && copy->second < index;
         copy = copies_.find(copy->second))
      if (counts(copy->second)) in.push_back(copy->second);
  }

  // What the last block before that of a step gave.
  void add_last_output(std::size_t index, std::vector<std::size_t>& in) const {
    for (auto at = std::ranges::lower_bound(outputs_, index); at != outputs_.begin();) {
      if (sites_[*--at].block == sites_[index].block) continue;
      in.push_back(*at);
      return;
    }
  }

  // Whether values tell what a step reads, and the dumps of B hold that, too.
  bool is_told(const std::optional<MadeOf>& made_of) const {
    return made_of && std::ranges::all_of(made_of->terms, [&](std::size_t i) { return counts(i); });
  }

  bool counts(std::size_t site) const {
    return sites_[site].role != Role::setting && sites_[site].compared() && !sites_[site].aside;
  }

  const std::vector<Site>& sites_;
  const ModuleTree tree_;
  // Sites, in their order: those that are not aside by block and role, the outputs of blocks, and
  // RoPE's tables.
  std::map<std::pair<std::optional<int64_t>, Role>, std::vector<std::size_t>> by_role_;
  std::vector<std::size_t> outputs_, tables_;
  std::vector<std::size_t> first_;             // By module.
  std::map<std::size_t, std::size_t> copies_;  // The next site that holds the same in A.
};

}  // namespace

void note_inputs(const std::map<std::string, std::vector<std::string>>& recorded,
                 std::vector<Site>& sites) {
  if (recorded.empty()) return;
  std::map<std::string_view, std::size_t> pairs;
  for (const Site& site : sites) pairs.emplace(site.a.name, site.index);
  for (Site& site : sites) {
    std::set<std::string_view> seen = {site.a.name};
    std::vector<std::string_view> open = {site.a.name};
    while (!open.empty()) {
      const auto sources = recorded.find(std::string(open.back()));
      open.pop_back();
      if (sources == recorded.end()) continue;
      for (const std::string& name : sources->second) {
        if (!seen.insert(name).second) continue;
        // What B has not dumped was made from something else in turn.
        if (const auto pair = pairs.find(name); pair != pairs.end())
          site.recorded.push_back(pair->second);
        else
          open.push_back(name);
      }
    }
  }
}

void find_inputs(std::vector<Site>& sites) {
  std::map<std::size_t, std::size_t> by_pair;
  for (std::size_t i = 0; i < sites.size(); ++i) by_pair.emplace(sites[i].index, i);
  const Edges edges(sites);
  for (std::size_t i = 0; i < sites.size(); ++i) {
    std::vector<std::size_t> in;
    for (const std::size_t pair : sites[i].recorded)
      if (const auto site = by_pair.find(pair); site != by_pair.end() && site->second < i &&
                                                sites[site->second].compared() &&
                                                !sites[site->second].aside)
        in.push_back(site->second);
    std::ranges::sort(in);
    sites[i].inputs = in.empty() ? edges.inputs_of(i) : in;
  }
}

void find_copies(std::vector<Site>& sites) {
  using Last = std::vector<std::size_t>;  // Of those that hold other values with these extremes.
  std::map<std::tuple<double, double, uint64_t>, Last> seen;
  for (std::size_t i = 0; i < sites.size(); ++i) {
    sites[i].copy_of.reset();
    const Stats& a = sites[i].comparison.a;
    if (!sites[i].compared() || sites[i].role == Role::setting || !(a.min < a.max)) continue;
    Last& last = seen[{a.min.value_or(0), a.max.value_or(0), a.finite}];
    const auto same = std::ranges::find_if(
        last, [&](std::size_t other) { return same_statistics(sites[other].comparison.a, a); });
    if (same == last.end()) {
      last.push_back(i);
      continue;
    }
    sites[i].copy_of = *same;
    *same = i;
  }
}

}  // namespace tensordiff
