// what_changed: which kinds of tensors were frozen, tuned, merged into or only converted?
//
// Tensors whose names differ in the number of their layer alone make a group.
//   frozen     no element changed              converted  only the dtype did, and what it rounds
//   merged     all changes are of low rank     tuned      the rest

#include <algorithm>
#include <map>

#include "analyze/analysis.h"
#include "analyze/low_rank.h"
#include "analyze/profile.h"

namespace tensordiff {
namespace {

struct Group {
  std::vector<const Subject*> pairs;
  uint64_t changed = 0, low_rank = 0, matrices = 0, converted = 0;
  uint64_t elements = 0, elements_changed = 0;
};

void add(const Subject& pair, const Profile& profile, Group& group) {
  const Diff& diff = pair.comparison.diff;
  group.pairs.push_back(&pair);
  group.elements += diff.compared;
  group.elements_changed += diff.compared - diff.equal;
  if (!pair.changed()) {
    group.converted += pair.dtype_a != pair.dtype_b;
    return;
  }
  ++group.changed;
  group.converted += pair.dtype_a != pair.dtype_b && pair.comparison.status == Status::close;
  group.matrices += profile.spectrum_change.energies.size() >= 2;
  group.low_rank += low_rank_of(profile.spectrum_change).rank > 0;
}

std::string_view state_of(const Group& group) {
  if (group.converted == group.pairs.size()) return "converted";
  if (group.changed == 0) return "frozen";
  if (group.matrices > 0 && group.low_rank == group.changed) return "merged";
  return group.changed < group.pairs.size() ? "partly tuned" : "tuned";
}

void examine(const Study& study, Answer& answer) {
  const std::vector<const Subject*> weights = study.weights();
  const std::vector<Profile>& profiles = study.profiles();
  std::map<std::string, Group> groups;
  for (std::size_t i = 0; i < weights.size(); ++i)
    add(*weights[i], profiles[i], groups[pattern_of(weights[i]->name, weights[i]->place)]);

  std::map<std::string_view, uint64_t> states;
  uint64_t elements = 0, changed = 0;
  Listing list{"groups", {"pattern", "state", "tensors", "changed", "share", "update"}, {}, 0};
  for (const auto& [pattern, group] : groups) {
    ++states[state_of(group)];
    elements += group.elements;
    changed += group.elements_changed;
    const double share = group.elements ? static_cast<double>(group.elements_changed) /
                                              static_cast<double>(group.elements)
                                        : 0;
    list.add({pattern, state_of(group), group.pairs.size(), group.changed, share,
              relative_change(group.pairs)});
  }
  for (const std::string_view state : {"frozen", "tuned", "partly tuned", "merged", "converted"}) {
    std::string key(state);
    std::ranges::replace(key, ' ', '_');
    answer.field(key, states[state]);
  }
  if (elements > 0)
    answer.field("share_of_elements", static_cast<double>(changed) / static_cast<double>(elements));
  else
    answer.unknown("share_of_elements", "weights that can be compared");
  answer.lists.push_back(std::move(list));
}

}  // namespace

constinit const Analysis analyses::what_changed = {
    .name = "what_changed",
    .flag = "--what-changed",
    .question = "Which layers were frozen, tuned, merged into or only converted?",
    .definition = "state of each group of tensors, and the share of its elements that changed",
    .examine = examine,
};

}  // namespace tensordiff
