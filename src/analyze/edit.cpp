#include "analyze/edit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "analyze/base_merge.h"
#include "analyze/code_book.h"
#include "analyze/profile.h"
#include "analyze/quantization.h"
#include "base/parallel.h"

namespace tensordiff {
namespace {

// B is no more like A than chance makes n values: cosines of unrelated values spread by 1 / √n.
bool unrelated(const Row& pair) {
  const Diff& diff = pair.comparison.diff;
  if (!diff.cosine || diff.compared < 64) return false;
  return std::abs(*diff.cosine) < std::max(0.05, 4 / std::sqrt(static_cast<double>(diff.compared)));
}

Maybe find_scale(const Row& pair) {
  const Diff& diff = pair.comparison.diff;
  if (!diff.cosine || diff.compared < 16) return std::nullopt;
  const double relative = precision_of(coarser(pair.a.dtype, pair.b.dtype)).relative;
  // What rounding takes from the cosine of two equal directions, with room for both sides.
  if (1 - std::abs(*diff.cosine) > 2 * relative * relative + 1e-14) return std::nullopt;
  const double factor = std::copysign(diff.norm_ratio.value_or(1), *diff.cosine);
  return EditFound{Edit::scaled, fmt::format("by {:.4g}", factor), 1};
}

Maybe find_sparse(const Row& pair) {
  constexpr double kFew = 0.05;
  const Diff& diff = pair.comparison.diff;
  const double share = static_cast<double>(diff.compared - diff.equal) /
                       static_cast<double>(std::max<uint64_t>(1, diff.compared));
  if (share > kFew || diff.compared < 64) return std::nullopt;
  return EditFound{Edit::sparse, "a few elements", 1};
}

EditFound judge(const Row& pair, const Profile& profile) {
  if (!pair.changed())
    return {pair.a.dtype == pair.b.dtype ? Edit::none : Edit::cast,
            pair.a.dtype == pair.b.dtype ? "" : fmt::format("to {}", name_of(pair.b.dtype)), 1};
  if (Maybe found = find_cast(pair)) return *found;
  if (Maybe found = find_pruning(pair, profile)) return *found;
  if (Maybe found = find_scale(pair)) return *found;
  if (Maybe found = find_sparse(pair)) return *found;
  if (Maybe found = find_low_rank(pair, profile)) return *found;
  // What still points where A does was neither turned nor replaced.
  const bool far = pair.comparison.diff.cosine.value_or(1) < 0.9;
  if (far)
    if (Maybe found = find_reordering(pair)) return *found;
  if (unrelated(pair)) return {Edit::replaced, "", 0};
  if (!pair.comparison.diff.cosine) return {Edit::unknown, "", 0};
  return {Edit::tuned, "", 0};
}

// The profile tells ranks up to 48. One matrix of each kind is looked at again for higher ones, and
// the others of its kind follow: adapters have one rank for all layers.
void find_high_ranks(const std::vector<const Row*>& weights, std::vector<EditFound>& edits) {
  constexpr std::size_t kKindsMax = 8;
  std::unordered_map<std::string, std::size_t> ranks;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const Shape& shape = weights[i]->views.a.shape;
    if (edits[i].edit != Edit::tuned || shape.size() != 2) continue;
    if (std::min(shape[0], shape[1]) <= kUpdateRankMax) continue;
    const std::string kind = pattern_of(weights[i]->a.name, weights[i]->a.place);
    if (!ranks.contains(kind)) {
      if (ranks.size() == kKindsMax) continue;
      ranks.emplace(kind, rank_of_change(*weights[i]));
    }
    const std::size_t rank = ranks[kind];
    if (rank > 0) edits[i] = {Edit::low_rank, fmt::format("rank {}", rank), 1};
  }
}

}  // namespace

std::string_view name_of(Edit edit) {
  constexpr std::string_view kNames[] = {"unchanged",
                                         "cast",
                                         "quantized",
                                         "pruned",
                                         "scaled",
                                         "merged",
                                         "low-rank update (LoRA)",
                                         "reordered",
                                         "rotated",
                                         "sparse update",
                                         "fine-tuned",
                                         "re-initialized",
                                         "unknown"};
  return kNames[static_cast<std::size_t>(edit)];
}

std::vector<EditFound> find_edits(const Study& study) {
  const std::vector<const Row*>& weights = study.weights();
  const std::vector<Profile>& profiles = study.profiles();
  std::vector<EditFound> edits(weights.size());
  for_each_index(weights.size(),
                 [&](std::size_t i) { edits[i] = judge(*weights[i], profiles[i]); });
  const Quantization& quantization = study.quantization();
  for (const Quantized& each : quantization.found) {
    const auto at =
        static_cast<std::size_t>(std::ranges::find(weights, each.pair) - weights.begin());
    const bool plain = !each.grid && is_plain(each.pair->b.dtype) && is_float(each.pair->b.dtype);
    if (plain || edits[at].edit == Edit::cast) continue;
    edits[at] = {Edit::quantized, each.scheme, 1};
  }
  find_merges(study, edits);
  find_high_ranks(weights, edits);
  return edits;
}

std::string ranges_text(const std::vector<int64_t>& numbers) {
  std::string out;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i;
    while (end + 1 < numbers.size() && numbers[end + 1] == numbers[end] + 1) ++end;
    if (!out.empty()) out += ", ";
    out +=
        end == i ? fmt::format("{}", numbers[i]) : fmt::format("{}-{}", numbers[i], numbers[end]);
    i = end + 1;
  }
  return out;
}

}  // namespace tensordiff
