// change_summary: how much changed, where most.
//
//   magnitude = ‖b − a‖ / ‖a‖ over all pairs of weights together
//   share     = elements that are not equal / elements compared

#include <algorithm>

#include "analyze/analysis.h"

namespace tensordiff {
namespace {

constexpr std::size_t kLargestShown = 10;

struct Counts {
  uint64_t unchanged = 0, changed = 0, reshaped = 0, retyped = 0, unreadable = 0;
  uint64_t elements = 0, elements_changed = 0;
};

Counts count(std::span<const Row* const> pairs) {
  Counts counts;
  for (const Row* pair : pairs) {
    counts.retyped += pair->a.dtype != pair->b.dtype;
    if (pair->comparison.status == Status::error) {
      ++counts.unreadable;
    } else if (pair->comparison.status == Status::incomparable) {
      ++counts.reshaped;
    } else {
      ++(pair->changed() ? counts.changed : counts.unchanged);
      const Diff& diff = pair->comparison.diff;
      counts.elements += diff.compared + diff.nonfinite_mismatch + diff.nonfinite_agreeing;
      counts.elements_changed += diff.compared - diff.equal + diff.nonfinite_mismatch;
    }
  }
  return counts;
}

void add_largest(const std::vector<const Row*>& weights, Answer& answer) {
  std::vector<const Row*> changed = weights;
  std::erase_if(changed, [](const Row* pair) { return !pair->changed(); });
  std::ranges::stable_sort(changed, std::greater(), [](const Row* pair) {
    return pair->comparison.diff.rel_l2.value_or(0);
  });
  if (changed.size() > kLargestShown) changed.resize(kLargestShown);
  Listing& table = answer.list("largest", {"tensor", "rel_l2", "max_abs", "cosine"});
  for (const Row* pair : changed) {
    const Diff& diff = pair->comparison.diff;
    table.add({pair->a.name, diff.rel_l2, diff.max_abs, diff.cosine});
  }
}

void examine(const Study& study, Answer& answer) {
  const Counts counts = count(study.pairs());
  const std::vector<const Row*>& weights = study.weights();
  answer.field("changed", counts.changed).field("unchanged", counts.unchanged);
  answer.field("added", study.only_b().size()).field("removed", study.only_a().size());
  answer.field("reshaped", counts.reshaped).field("retyped", counts.retyped);
  if (counts.unreadable > 0) answer.field("unreadable", counts.unreadable);
  const std::optional<double> magnitude = relative_change(weights);
  if (magnitude)
    answer.field("magnitude", *magnitude);
  else
    answer.unknown("magnitude", "a pair of weights that can be compared and is not zero");
  if (counts.elements > 0)
    answer.field("share_of_elements", static_cast<double>(counts.elements_changed) /
                                          static_cast<double>(counts.elements));
  add_largest(weights, answer);
  add_change_by_depth(weights, answer);
}

}  // namespace

constinit const Analysis analyses::change_summary = {
    .name = "change_summary",
    .flag = "--change-summary",
    .question = "How much changed, and where most?",
    .definition = "counts of changed, added, removed and reshaped tensors; size of the change",
    .examine = examine,
};

}  // namespace tensordiff
