// Pairs tensors of the same name.

#include <unordered_map>

#include "match/matcher.h"
#include "match/meaning.h"

namespace tensordiff {
namespace {

Result<Proposal> propose(const MatchInput& input) {
  std::unordered_map<std::string_view, std::size_t> by_name;
  by_name.reserve(input.free_b.size());
  for (const std::size_t b : input.free_b) by_name.emplace(input.side_b.names[b], b);

  Proposal proposal;
  for (const std::size_t a : input.free_a) {
    const std::string& name = input.side_a.names[a];
    const auto found = by_name.find(name);
    if (found == by_name.end()) continue;
    if (is_other_activation(input.side_a.places[a], input.side_b.places[found->second])) continue;
    Pair pair{.a = a, .b = found->second, .layer = {}, .stage = {}, .matched_by = {}};
    if (std::optional<LayerStage> place = input.layer_stage_a(a)) {
      pair.layer = place->layer;
      pair.stage = std::move(place->stage);
    }
    proposal.pairs.push_back(std::move(pair));
    by_name.erase(found);
  }
  return proposal;
}

}  // namespace

constinit const Matcher matchers::exact = {
    .name = "exact",
    .summary = "the names are the same",
    .propose = propose,
};

}  // namespace tensordiff
