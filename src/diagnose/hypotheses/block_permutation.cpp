// Blocks of features in another order: heads, ranks, experts, q|k|v, gate|up.
//
// For each number of blocks that divides the axis, each block of b is matched with the nearest of
// a. Fewest blocks first, so that two swapped ranks are not told as eight swapped heads. Weights
// are looked at along both axes.

#include <fmt/format.h>

#include <cmath>

#include "diagnose/hypotheses/blocks.h"
#include "diagnose/hypotheses/diagnosis.h"
#include "diagnose/hypotheses/rank_order.h"
#include "diagnose/sample/fit.h"

namespace tensordiff {
namespace {

std::string describe(const BlockMap& map, uint64_t heads, std::string_view axis) {
  std::vector<uint64_t> moved;
  for (uint64_t to = 0; to < map.source.size(); ++to)
    if (map.source[to] != to) moved.push_back(to);
  const bool of_heads = heads > 1 && map.source.size() == heads;
  if (moved.size() == 2)
    return fmt::format("{} {} and {} (of {}) are swapped along the {}",
                       of_heads ? "heads" : "blocks", moved[0], moved[1], map.source.size(), axis);
  std::string list;
  for (std::size_t i = 0; i < std::min<std::size_t>(map.source.size(), 16); ++i)
    list += fmt::format("{}{}", i ? ", " : "", map.source[i]);
  return fmt::format("{} {} along the {} are in another order: B has A's [{}{}]", map.source.size(),
                     of_heads ? "heads" : "blocks", axis, list,
                     map.source.size() > 16 ? ", …" : "");
}

std::optional<Explanation> along(const Case& it, const Matrix& a, const Matrix& b,
                                 std::string_view axis) {
  std::optional<Explanation> best;
  for (const uint64_t count : block_counts(a)) {
    const std::optional<BlockMap> map = block_order(a, b, count);
    if (!map) continue;
    Explanation found;
    Matrix model = rearranged(a, *map);
    found.after = distance(b.values, model.values) / it.norm_a;
    if (a.features == it.a.features && a.tokens == it.a.tokens) found.model = std::move(model);
    found.text = describe(*map, a.heads, axis);
    found.parameters = {{"blocks", static_cast<double>(count)}, {"source", map->source}};
    if (accepted(it, found)) return found;
    if (!best || found.after < best->after) best = std::move(found);
  }
  return best;
}

std::optional<Explanation> examine(const Case& it) {
  if (it.norm_a == 0) return std::nullopt;
  if (std::optional<Explanation> ranks = ranks_in_another_order(it)) return ranks;
  std::optional<Explanation> found = along(it, it.a, it.b, "features");
  if ((found && accepted(it, *found)) || it.run.activations || !it.a.whole) return found;
  std::optional<Explanation> rows = along(it, transposed(it.a), transposed(it.b), "rows");
  return rows && (!found || rows->after < found->after) ? rows : found;
}

}  // namespace

constinit const Diagnosis diagnoses::block_permutation = {
    .code = "block_permutation",
    .question = "Are blocks of features in another order?",
    .explains = "heads, ranks, experts, or the parts of a fused q|k|v or gate|up in another order",
    .layout = true,
    .examine = examine,
};

}  // namespace tensordiff
