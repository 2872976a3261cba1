// Pairs what the user said belongs together (--pairs), whatever the names.

#include <unordered_map>

#include "base/text.h"
#include "match/matcher.h"

namespace tensordiff {
namespace {

using ByName = std::unordered_map<std::string_view, std::size_t>;

ByName by_name(const Catalog& catalog, const std::vector<std::size_t>& free) {
  ByName result;
  for (const std::size_t tensor : free) result.emplace(catalog.tensors[tensor].name, tensor);
  return result;
}

Proposal propose(const MatchInput& input) {
  Proposal proposal;
  if (input.options.pairs.empty()) return proposal;
  ByName of_a = by_name(input.a, input.free_a);
  ByName of_b = by_name(input.b, input.free_b);
  for (const NamePair& wanted : input.options.pairs) {
    const auto a = of_a.find(wanted.a);
    const auto b = of_b.find(wanted.b);
    if (a == of_a.end() || b == of_b.end()) {
      const bool in_a = a != of_a.end();
      proposal.notes.push_back(
          fmt::format("the pair '{}' and '{}' was not made: {} has no such "
                      "tensor, or it is in another pair",
                      printable(wanted.a), printable(wanted.b), in_a ? 'b' : 'a'));
      continue;
    }
    Pair pair{.a = a->second, .b = b->second, .layer = {}, .stage = {}, .matched_by = {}};
    if (std::optional<LayerStage> place = parse_layer_stage(wanted.a)) {
      pair.layer = place->layer;
      pair.stage = std::move(place->stage);
    }
    proposal.pairs.push_back(std::move(pair));
    of_a.erase(a);
    of_b.erase(b);
  }
  return proposal;
}

}  // namespace

constinit const Matcher matchers::manual = {
    .name = "manual",
    .summary = "the user said so, with --pairs",
    .propose = propose,
};

}  // namespace tensordiff
