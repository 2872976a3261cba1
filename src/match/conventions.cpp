// Pairs names that mean the same in the conventions of canonical.h.
//
// A meaning that two tensors of one side have pairs neither of them, and says so.

#include "base/text.h"
#include "match/matcher.h"
#include "match/meaning.h"

namespace tensordiff {
namespace {

using ByMeaning = std::map<CanonicalName, std::size_t>;

ByMeaning by_meaning(const std::vector<std::string>& names, const std::vector<std::size_t>& free,
                     char side, std::vector<std::string>& notes) {
  Meanings meanings = meanings_of(names, free);
  if (!meanings.ambiguous.empty()) {
    const auto [one, other] = meanings.ambiguous[0];
    notes.push_back(
        fmt::format("'{}' and '{}' of {} mean the same by convention{}: not paired by it",
                    printable(names[one]), printable(names[other]), side,
                    meanings.ambiguous.size() > 1 ? ", and others too" : ""));
  }
  return std::move(meanings.tensors);
}

// Of all ranks.
uint64_t elements_held(const Tensor& tensor) {
  uint64_t sum = 0;
  for (const View& shard : tensor.shards) sum += shard.elements();
  return tensor.shards.empty() ? tensor.elements() : sum;
}

// The up projection of a gated model may hold the gate as well; that is for the fused strategy.
bool is_fused(const ByMeaning& other, const CanonicalName& meaning, const Tensor& tensor,
              const Tensor& partner) {
  CanonicalName gate = meaning;
  gate.role = "gate";
  return meaning.role == "up" && other.contains(gate) &&
         elements_held(tensor) == 2 * elements_held(partner);
}

Result<Proposal> propose(const MatchInput& input) {
  Proposal proposal;
  const ByMeaning of_a = by_meaning(input.names_a, input.free_a, 'a', proposal.notes);
  const ByMeaning of_b = by_meaning(input.names_b, input.free_b, 'b', proposal.notes);
  for (const auto& [meaning, a] : of_a) {
    const auto found = of_b.find(meaning);
    if (found == of_b.end()) continue;
    const Tensor& tensor_a = input.a.tensors[a];
    const Tensor& tensor_b = input.b.tensors[found->second];
    if (is_fused(of_b, meaning, tensor_a, tensor_b) || is_fused(of_a, meaning, tensor_b, tensor_a))
      continue;
    proposal.pairs.push_back(
        {.a = a, .b = found->second, .layer = {}, .stage = {}, .matched_by = {}});
  }
  if (proposal.pairs.empty()) proposal.notes.clear();  // Then these are no conventions in use.
  return proposal;
}

}  // namespace

constinit const Matcher matchers::conventions = {
    .name = "conventions",
    .summary = "the names mean the same in known naming schemes",
    .propose = propose,
};

}  // namespace tensordiff
