#include "diagnose/graph/heads.h"

#include <algorithm>

#include "align/view.h"

namespace tensordiff {

std::vector<uint64_t> known_head_dims(const Run& run, const Site& site) {
  std::vector<uint64_t> dims;
  const auto add = [&](uint64_t dim) {
    if (dim > 0 && std::ranges::find(dims, dim) == dims.end()) dims.push_back(dim);
  };
  if (run.facts.head_dim) add(*run.facts.head_dim);
  for (const Role role :
       {Role::query_final, Role::key_final, Role::value_final, Role::query, Role::key}) {
    const Site* other = find_role(run, site, role);
    if (!other) continue;
    const TokenView tokens = by_tokens(other->views.a, run.extent);
    if (tokens.heads > 0) add(tokens.features / tokens.heads);
  }
  return dims;
}

void usual_first(std::vector<uint64_t>& dims) {
  constexpr uint64_t kUsual[] = {128, 64, 96, 80, 256};
  std::ranges::stable_partition(
      dims, [&](uint64_t dim) { return std::ranges::find(kUsual, dim) != std::end(kUsual); });
}

uint64_t ranks_of(const Run& run, char side) {
  uint64_t ranks = 1;
  for (const Site& site : run.sites) {
    for (const Step& step : site.views.steps) {
      if (step.side != side) continue;
      if (step.op == Op::sum || step.op == Op::replica) ranks = std::max(ranks, step.argument[0]);
      if (step.op == Op::concat || step.op == Op::concat_parts)
        ranks = std::max(ranks, step.argument[1]);
    }
  }
  return ranks;
}

bool reduces_over_ranks(Role role) {
  return role == Role::attention_output || role == Role::mlp_output;
}

View first_features(const View& view, const Extent& extent, uint64_t features) {
  const TokenView source = by_tokens(view, extent);
  const Shape& shape = source.view.shape;
  if (shape.empty() || source.features <= features) return view;
  const bool apart = source.heads > 0;
  const std::size_t axis = shape.size() - (apart ? 2 : 1);
  return narrowed(view, source.order[axis], 0,
                  std::min(features / (apart ? shape.back() : 1), shape[axis]));
}

}  // namespace tensordiff
