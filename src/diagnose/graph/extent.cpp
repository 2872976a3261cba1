#include "diagnose/graph/extent.h"

#include <algorithm>
#include <map>
#include <set>

#include "diagnose/sample/fit.h"

namespace tensordiff {
namespace {

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

// A table of positions has one row for all sequences, and a run has few of those: what fewer than
// so many tensors have before their tokens is not the batch.
constexpr double kShareOfBatch = 0.25;

// The smallest product of what stands before the tokens. Where these stand first in all tensors,
// what they all have behind them; in queries and the like that may be heads.
uint64_t batch_of(const std::vector<Site>& sites, uint64_t tokens) {
  std::map<uint64_t, std::size_t> before;
  std::size_t all = 0;
  std::set<uint64_t> behind;
  for_each_of_tokens(sites, tokens, [&](const Site& site, std::size_t axis) {
    const Shape& shape = site.views.a.shape;
    uint64_t product = 1;
    for (std::size_t i = 0; i < axis; ++i) product *= shape[i];
    ++before[product];
    ++all;
    const bool may_have_heads = site.role >= Role::query && site.role <= Role::value_final;
    if (!may_have_heads) behind.insert(axis == 0 && shape.size() > 2 ? shape[1] : 0);
  });
  if (behind.size() == 1 && *behind.begin() > 0) return *behind.begin();
  for (const auto& [product, count] : before)
    if (static_cast<double>(count) >= kShareOfBatch * static_cast<double>(all)) return product;
  return before.empty() ? 1 : before.begin()->first;
}

constexpr double kNearlyAll = 0.9;  // Of the tensors of a run: some are tables and numbers.

// Whether a size that nearly all tensors have is the batch: it stands first, and what stands behind
// it is another number from tensor to tensor, as the tokens of two towers or the rows of maps.
// Tokens that stand first have the same behind them, or nothing but features.
bool is_batch(const std::vector<Site>& sites, uint64_t size) {
  double all = 0, first = 0;
  std::map<uint64_t, double> behind;
  for (const Site& site : sites) {
    const Shape& shape = site.views.a.shape;
    if (!site.compared() || shape.size() < 2 ||
        std::find(shape.begin(), shape.end() - 1, size) == shape.end() - 1)
      continue;
    all += 1;
    if (shape.size() < 3 || shape[0] != size) continue;
    first += 1;
    behind[shape[1]] += 1;
  }
  if (first < kNearlyAll * all) return false;
  return std::ranges::none_of(behind,
                              [&](const auto& each) { return each.second >= kNearlyAll * all; });
}

// The number of tokens is the largest size that nearly every tensor has before its last axis.
Extent sizes_of(const std::vector<Site>& sites) {
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
    if (size > 1 && static_cast<double>(count) >= kNearlyAll * static_cast<double>(tensors))
      extent.tokens = size;
  if (extent.tokens > 0 && is_batch(sites, extent.tokens)) return {.batch = extent.tokens};
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
  if (flat.block != split.block || !flat.compared() || !split.compared()) return std::nullopt;
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

Extent extent_of(const std::vector<Site>& sites) {
  Extent extent = sizes_of(sites);
  extent.heads_first = heads_stand_first(sites, extent);
  return extent;
}

}  // namespace tensordiff
