// what_changed: what kind of edit made B out of A?
//
// Each weight is judged by itself (edit.h); the answer is the edit that most of those that changed
// have in common, with the share that it explains. Tensors whose names differ in the number of
// their layer alone make a group.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analyze/analysis.h"
#include "analyze/edit.h"

namespace tensordiff {
namespace {

struct Group {
  std::vector<const Row*> pairs;
  std::map<Edit, uint64_t> edits;
  uint64_t changed = 0, elements = 0, elements_changed = 0;
};

// All weights with one edit.
struct EditKind {
  Edit edit = Edit::none;
  std::map<std::string, uint64_t> details;
  std::vector<const Row*> pairs;
  double explained = 0;  // Sum over them.
};

void add(const Row& pair, const EditFound& edit, Group& group) {
  const Diff& diff = pair.comparison.diff;
  group.pairs.push_back(&pair);
  group.elements += diff.compared;
  group.elements_changed += diff.compared - diff.equal;
  group.changed += pair.changed();
  ++group.edits[edit.edit];
}

std::string state_of(const Group& group) {
  if (group.edits.size() == 1) return std::string(name_of(group.edits.begin()->first));
  if (group.edits.size() == 2 && group.edits.contains(Edit::none)) {
    for (const auto& [edit, count] : group.edits)
      if (edit != Edit::none) return fmt::format("partly {}", name_of(edit));
  }
  return "several";
}

// "rank 16", "ranks 8 to 16", or the few texts that there are.
std::string details_of(const EditKind& kind) {
  std::vector<std::pair<std::string, uint64_t>> order(kind.details.begin(), kind.details.end());
  std::ranges::stable_sort(order, std::greater(), &std::pair<std::string, uint64_t>::second);
  if (order.empty() || order[0].first.empty()) return "";
  if (kind.edit == Edit::low_rank) {
    std::size_t least = kUpdateRankMax + 1, most = 0;
    for (const auto& [text, count] : order) {
      const std::size_t rank = std::stoul(text.substr(text.rfind(' ') + 1));
      least = std::min(least, rank), most = std::max(most, rank);
    }
    return least == most ? fmt::format("rank {}", most)
                         : fmt::format("ranks {} to {}", least, most);
  }
  std::string out = order[0].first;
  if (order.size() == 2) out += "; " + order[1].first;
  if (order.size() > 2) out += fmt::format("; {} others", order.size() - 1);
  return out;
}

std::string layers_of(const std::vector<const Row*>& pairs) {
  std::set<int64_t> layers;
  for (const Row* pair : pairs)
    if (pair->depth()) layers.insert(*pair->depth());
  return ranges_text(std::vector<int64_t>(layers.begin(), layers.end()));
}

// Layers of which nothing changed.
std::string frozen_layers(const std::vector<const Row*>& weights) {
  std::vector<int64_t> frozen;
  for (const auto& [depth, pairs] : by_depth(weights))
    if (std::ranges::none_of(pairs, [](const Row* each) { return each->changed(); }))
      frozen.push_back(depth);
  return ranges_text(frozen);
}

std::vector<EditKind> kinds_of(const std::vector<const Row*>& weights,
                               const std::vector<EditFound>& edits) {
  std::map<Edit, EditKind> kinds;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    EditKind& kind = kinds[edits[i].edit];
    kind.edit = edits[i].edit;
    kind.pairs.push_back(weights[i]);
    ++kind.details[edits[i].detail];
    kind.explained += edits[i].explained;
  }
  std::vector<EditKind> order;
  for (auto& [edit, kind] : kinds) order.push_back(std::move(kind));
  std::ranges::stable_sort(order, std::greater(), [](const EditKind& kind) {
    return kind.edit == Edit::none ? 0 : kind.pairs.size();
  });
  return order;
}

void add_kinds(const std::vector<const Row*>& weights, const std::vector<EditFound>& edits,
               Answer& answer) {
  const std::vector<EditKind> kinds = kinds_of(weights, edits);
  const EditKind& first = kinds[0];
  uint64_t changed = 0;
  for (const EditFound& each : edits) changed += each.edit != Edit::none;
  const std::string detail = details_of(first);
  answer.field("edit", changed == 0     ? "identical"
                       : detail.empty() ? std::string(name_of(first.edit))
                                        : fmt::format("{}: {}", name_of(first.edit), detail));
  answer.field("tensors_of_it", changed == 0 ? weights.size() : first.pairs.size());
  answer.field("tensors_changed", changed);
  if (changed > 0) {
    const double all = static_cast<double>(changed);
    answer.field("share_of_tensors", static_cast<double>(first.pairs.size()) / all);
    answer.field("explained", first.explained / static_cast<double>(first.pairs.size()));
  }
  const std::string frozen = frozen_layers(weights);
  if (changed > 0) answer.field("frozen_layers", frozen.empty() ? "none" : frozen);
  Listing& list =
      answer.list("edits", {"edit", "tensors", "detail", "layers", "update", "example"});
  for (const EditKind& kind : kinds)
    list.add({name_of(kind.edit), kind.pairs.size(), details_of(kind), layers_of(kind.pairs),
              relative_change(kind.pairs), kind.pairs[0]->a.name});
  if (first.edit == Edit::tuned)
    answer.notes.push_back(
        fmt::format("fine-tuned: none of the other edits explains it; ranks up to {} were tested",
                    kUpdateRankMax));
}

void examine(const Study& study, Answer& answer) {
  const std::vector<const Row*>& weights = study.weights();
  if (weights.empty()) {
    answer.unknown("edit", "weights that can be compared");
    return;
  }
  const std::vector<EditFound> edits = find_edits(study);
  add_kinds(weights, edits, answer);
  std::map<std::string, Group> groups;
  uint64_t elements = 0, changed = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    add(*weights[i], edits[i], groups[pattern_of(weights[i]->a.name, weights[i]->a.place)]);
    elements += weights[i]->comparison.diff.compared;
    changed += weights[i]->comparison.diff.compared - weights[i]->comparison.diff.equal;
  }
  if (elements > 0)
    answer.field("share_of_elements", static_cast<double>(changed) / static_cast<double>(elements));
  Listing& list =
      answer.list("groups", {"pattern", "state", "tensors", "changed", "share", "update"});
  for (const auto& [pattern, group] : groups) {
    const double share = group.elements ? static_cast<double>(group.elements_changed) /
                                              static_cast<double>(group.elements)
                                        : 0;
    list.add({pattern, state_of(group), group.pairs.size(), group.changed, share,
              relative_change(group.pairs)});
  }
}

}  // namespace

constinit const Analysis analyses::what_changed = {
    .name = "what_changed",
    .flag = "--what-changed",
    .question = "What kind of edit made B out of A, and which layers did it leave alone?",
    .definition = "cast, quantized, pruned, fine-tuned, LoRA or other merge, by group of tensors",
    .examine = examine,
};

}  // namespace tensordiff
