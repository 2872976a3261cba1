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
#include "analyze/layer_map.h"
#include "analyze/low_rank.h"

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
  uint64_t elements = 0;
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
std::string frozen_layers(const std::vector<EditFound>& edits) {
  std::map<int64_t, bool> layers;
  for (const EditFound& each : edits) {
    if (!each.pair->depth()) continue;
    bool& frozen = layers.emplace(*each.pair->depth(), true).first->second;
    frozen &= each.edit == Edit::none;
  }
  std::vector<int64_t> frozen;
  for (const auto& [depth, is] : layers)
    if (is) frozen.push_back(depth);
  return ranges_text(frozen);
}

std::vector<EditKind> kinds_of(const std::vector<EditFound>& edits) {
  std::map<Edit, EditKind> kinds;
  for (const EditFound& each : edits) {
    EditKind& kind = kinds[each.edit];
    kind.edit = each.edit;
    kind.pairs.push_back(each.pair);
    kind.elements += each.pair->comparison.diff.compared;
    ++kind.details[each.detail];
    kind.explained += each.explained;
  }
  std::vector<EditKind> order;
  for (auto& [edit, kind] : kinds) order.push_back(std::move(kind));
  // Of as many tensors, the kind of the larger ones.
  std::ranges::stable_sort(order, std::greater(), [](const EditKind& kind) {
    return kind.edit == Edit::none ? std::pair<std::size_t, uint64_t>()
                                   : std::pair(kind.pairs.size(), kind.elements);
  });
  return order;
}

std::string text_of(const EditKind& kind) {
  const std::string detail = details_of(kind);
  return detail.empty() ? std::string(name_of(kind.edit))
                        : fmt::format("{}: {}", name_of(kind.edit), detail);
}

// Rows, columns or heads that were pruned or added, of each matrix by itself.
void add_lines(const std::vector<EditFound>& edits, Answer& answer) {
  Listing list{"lines", {"tensor", "edit", "lines"}, {}, 0};
  for (const EditFound& each : edits) {
    const bool lines = each.detail.starts_with("rows") || each.detail.starts_with("columns") ||
                       each.detail.starts_with("heads");
    if ((each.edit == Edit::pruned || each.edit == Edit::resized) && lines)
      list.add({each.pair->a.name, name_of(each.edit), each.detail});
  }
  if (list.rows_in_all > 0) answer.lists.push_back(std::move(list));
}

void add_kinds(const std::vector<EditFound>& edits, Answer& answer) {
  const std::vector<EditKind> kinds = kinds_of(edits);
  const EditKind& first = kinds[0];
  uint64_t changed = 0;
  for (const EditFound& each : edits) changed += each.edit != Edit::none;
  answer.field("edit", changed == 0 ? "identical" : text_of(first));
  answer.field("tensors_of_it", changed == 0 ? edits.size() : first.pairs.size());
  answer.field("tensors_changed", changed);
  if (changed > 0) {
    const double all = static_cast<double>(changed);
    answer.field("share_of_tensors", static_cast<double>(first.pairs.size()) / all);
    answer.field("explained", first.explained / static_cast<double>(first.pairs.size()));
  }
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

// Layers that stand in other places than in A: their tensors are paired by number, and say nothing.
void add_restacking(const Study& study, std::vector<EditFound>& edits, Answer& answer) {
  const LayerMap& map = study.layer_map();
  std::map<int64_t, int64_t> from;
  uint64_t moved = 0, all = 0;
  for (std::size_t i = 0; i < map.from.size(); ++i) from[map.like.b[i]] = map.from[i];
  for (const Tensor& tensor : study.b().tensors) {
    if (purpose_of(tensor.name, tensor.view.shape) != Purpose::weight) continue;
    const auto layer = from.find(tensor.place.layer);
    const bool mapped = layer != from.end() && layer->second >= 0;
    ++all;
    moved += mapped && layer->second != layer->first;
  }
  std::erase_if(edits, [&](const EditFound& each) {
    const auto layer = each.pair->depth() ? from.find(*each.pair->depth()) : from.end();
    return layer != from.end() && layer->second >= 0 && layer->second != layer->first;
  });
  std::string text = fmt::format("restacked layers: {}", map.text());
  if (!map.dropped.empty()) text += fmt::format("; dropped {}", ranges_text(map.dropped));
  if (!map.repeated.empty()) text += fmt::format("; repeated {}", ranges_text(map.repeated));
  uint64_t changed = 0;
  for (const EditFound& each : edits) changed += each.edit != Edit::none;
  if (changed > 0) text += fmt::format("; then {}", text_of(kinds_of(edits)[0]));
  answer.field("edit", text)
      .field("tensors_of_it", moved)
      .field("tensors_changed", moved + changed);
  if (moved + changed > 0)
    answer.field("share_of_tensors",
                 static_cast<double>(moved) / static_cast<double>(moved + changed));
  Listing& list = answer.list("edits", {"edit", "tensors", "detail"});
  list.add({"restacked layers", moved, map.text()});
  if (!edits.empty())
    for (const EditKind& kind : kinds_of(edits))
      list.add({name_of(kind.edit), kind.pairs.size(), details_of(kind)});
  answer.notes.push_back(
      fmt::format("{} of {} weights of B stand in a layer of another number; the others are judged",
                  moved, all));
}

void add_groups(const std::vector<EditFound>& edits, Answer& answer) {
  std::map<std::string, Group> groups;
  uint64_t elements = 0, changed = 0;
  for (const EditFound& each : edits) {
    const Row& pair = *each.pair;
    add(pair, each, groups[pattern_of(pair.a.name, pair.a.place)]);
    elements += pair.comparison.diff.compared;
    changed += pair.comparison.diff.compared - pair.comparison.diff.equal;
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

void examine(const Study& study, Answer& answer) {
  std::vector<EditFound> edits = find_edits(study);
  if (edits.empty()) {
    answer.unknown("edit", "weights that can be compared");
    return;
  }
  if (study.layer_map().restacked())
    add_restacking(study, edits, answer);
  else
    add_kinds(edits, answer);
  const std::string frozen = frozen_layers(edits);
  if (std::ranges::any_of(edits, [](const EditFound& it) { return it.edit != Edit::none; }))
    answer.field("frozen_layers", frozen.empty() ? "none" : frozen);
  add_groups(edits, answer);
  add_lines(edits, answer);
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
