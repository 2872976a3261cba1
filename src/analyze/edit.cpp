#include "analyze/edit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyze/base_merge.h"
#include "analyze/code_book.h"
#include "analyze/lines.h"
#include "analyze/low_rank.h"
#include "analyze/patch.h"
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

// What is left of each once its mean is gone: norms lie close to 1, whatever model they are of.
bool centred_unrelated(const Row& pair) {
  constexpr std::size_t kSample = 4096;
  if (pair.views.a.shape.size() != 1 || pair.comparison.diff.compared < 64) return false;
  Result<std::vector<double>> a = read_values(pair.views.a, kSample);
  Result<std::vector<double>> b = read_values(pair.views.b, kSample);
  if (!a.ok() || !b.ok()) return false;
  for (std::vector<double>* values : {&a.value(), &b.value()}) {
    double sum = 0;
    for (const double value : *values) sum += value;
    for (double& value : *values) value -= sum / static_cast<double>(values->size());
  }
  const double aa = dot(a.value(), a.value()), bb = dot(b.value(), b.value());
  if (!(aa > 0) || !(bb > 0)) return false;
  const double size = std::sqrt(static_cast<double>(a.value().size()));
  return std::abs(cosine(a.value(), b.value())) < 4 / size && bb > 0.1 * aa && bb < 10 * aa;
}

// Values so few that chance alone may give this cosine: they may be of A or of any other model.
bool too_few_to_tell(const Row& pair) {
  constexpr double kSigns = 4;  // Standard errors.
  const double cosine = std::abs(pair.comparison.diff.cosine.value_or(0));
  const auto count = static_cast<double>(pair.comparison.diff.compared);
  const double free = std::max(0.0, count - 1);
  return cosine * std::sqrt(free) < kSigns * std::sqrt(std::max(0.0, 1 - cosine * cosine));
}

EditFound judge(const Study& study, const Row& pair, const Profile& profile) {
  if (!pair.changed())
    return {pair.a.dtype == pair.b.dtype ? Edit::none : Edit::cast,
            pair.a.dtype == pair.b.dtype ? "" : fmt::format("to {}", name_of(pair.b.dtype)), 1};
  if (Maybe found = find_cast(pair)) return *found;
  if (Maybe found = find_pruning(study, pair, profile)) return *found;
  if (Maybe found = find_scale(pair)) return *found;
  if (Maybe found = find_sparse(pair)) return *found;
  if (Maybe found = find_low_rank(pair, profile)) return *found;
  if (Maybe found = find_scaled_lines(pair)) return *found;
  // What still points where A does was neither turned nor replaced.
  const bool far = pair.comparison.diff.cosine.value_or(1) < 0.9;
  if (far)
    if (Maybe found = find_reordering(pair)) return *found;
  if (unrelated(pair) || centred_unrelated(pair)) return {Edit::replaced, "", 0};
  if (!pair.comparison.diff.cosine || too_few_to_tell(pair)) return {Edit::unknown, "", 0};
  return {Edit::tuned, "", 0};
}

void find_high_ranks(const Study& study, std::vector<EditFound>& edits) {
  for (std::size_t i = 0; i < edits.size(); ++i) {
    if (edits[i].edit != Edit::tuned) continue;
    const std::size_t rank = study.higher_ranks().of(*study.weights()[i], study.profiles()[i]);
    if (rank > 0) edits[i] = {Edit::low_rank, fmt::format("rank {}", rank), 1};
  }
}

// Matrices of different sizes: what was compared of them, if anything, says less.
void add_resized(const Study& study, std::vector<EditFound>& edits) {
  for (const Row* pair : resized_pairs(study)) {
    EditFound found = find_resized(study, *pair).value_or(EditFound{Edit::unknown, "", 0});
    found.pair = pair;
    const auto known = std::ranges::find(edits, pair, &EditFound::pair);
    if (known == edits.end())
      edits.push_back(std::move(found));
    else if (found.edit != Edit::unknown)
      *known = std::move(found);
  }
}

}  // namespace

std::string_view name_of(Edit edit) {
  constexpr std::string_view kNames[] = {
      "unchanged",      "cast",    "quantized",     "pruned",
      "resized",        "scaled",  "merged",        "low-rank update (LoRA)",
      "reordered",      "rotated", "sparse update", "fine-tuned",
      "re-initialized", "unknown"};
  return kNames[static_cast<std::size_t>(edit)];
}

std::vector<EditFound> find_edits(const Study& study) {
  const std::vector<const Row*>& weights = study.weights();
  const std::vector<Profile>& profiles = study.profiles();
  std::vector<EditFound> edits(weights.size());
  for_each_index(weights.size(),
                 [&](std::size_t i) { edits[i] = judge(study, *weights[i], profiles[i]); });
  const Quantization& quantization = study.quantization();
  for (const Quantized& each : quantization.found) {
    const auto at =
        static_cast<std::size_t>(std::ranges::find(weights, each.pair) - weights.begin());
    const bool plain = !each.grid && is_plain(each.pair->b.dtype) && is_float(each.pair->b.dtype);
    if (plain || edits[at].edit == Edit::cast) continue;
    edits[at] = {Edit::quantized, each.scheme, 1};
  }
  find_merges(study, edits);
  find_high_ranks(study, edits);
  for (std::size_t i = 0; i < weights.size(); ++i) edits[i].pair = weights[i];
  add_resized(study, edits);
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
