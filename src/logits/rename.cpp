#include "logits/rename.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "logits/sequences.h"
#include "naming/naming.h"

namespace tensordiff {
namespace {

std::string prefix_of(const std::string& name) { return name.substr(0, name.find('/') + 1); }

// The prefix "sequence_3/" of each sequence that tells its ids, by the ids.
std::multimap<std::vector<int64_t>, std::string> prefixes_of(const Catalog& catalog) {
  std::multimap<std::vector<int64_t>, std::string> prefixes;
  const Result<std::vector<TokenSequence>> sequences = sequences_of(catalog);
  if (!sequences.ok()) return prefixes;
  for (const TokenSequence& sequence : sequences.value())
    if (!sequence.ids.empty()) prefixes.emplace(sequence.ids, prefix_of(sequence.name));
  return prefixes;
}

// The tensors that hold sequences, in their order.
std::vector<std::size_t> tensors_of(const Catalog& catalog) {
  std::vector<std::size_t> tensors;
  const Result<std::vector<TokenSequence>> sequences = sequences_of(catalog);
  if (!sequences.ok()) return tensors;
  for (const TokenSequence& sequence : sequences.value())
    if (tensors.empty() || tensors.back() != sequence.tensor) tensors.push_back(sequence.tensor);
  return tensors;
}

void pair_in_order(Catalog& a, Catalog& b) {
  if (!holds_only_sequences(a) || !holds_only_sequences(b)) return;
  const std::vector<std::size_t> of_a = tensors_of(a), of_b = tensors_of(b);
  if (of_a.size() != of_b.size()) return;
  for (std::size_t i = 0; i < of_a.size(); ++i)
    a.tensors[of_a[i]].known_as = b.tensors[of_b[i]].known_as = fmt::format("logits_{}", i);
  read_places(a);
  read_places(b);
}

}  // namespace

void name_sequences_alike(Catalog& a, Catalog& b, std::vector<std::string>& notes) {
  constexpr std::string_view kFormat = "log-probs";
  if (a.format != kFormat || b.format != kFormat) return pair_in_order(a, b);
  const auto of_a = prefixes_of(a), of_b = prefixes_of(b);
  std::map<std::string, std::string> names;  // Of B to those of A.
  for (auto at = of_a.begin(); at != of_a.end(); at = of_a.upper_bound(at->first)) {
    const auto [first, last] = of_a.equal_range(at->first);
    auto [mine, end] = of_b.equal_range(at->first);
    for (auto each = first; each != last && mine != end; ++each, ++mine)
      names[mine->second] = each->second;
  }
  if (names.empty()) return;
  std::size_t moved = 0;
  for (const auto& [from, to] : names) moved += from != to ? 1 : 0;
  if (moved == 0) return;
  for (Tensor& tensor : b.tensors) {
    const std::string prefix = prefix_of(tensor.name);
    const auto found = names.find(prefix);
    const std::string rest = tensor.name.substr(prefix.size());
    // What has no partner must not take a name that has one.
    tensor.name = (found == names.end() ? "other_" + prefix : found->second) + rest;
  }
  make_names_unique(b);
  read_places(b);
  notes.push_back(
      fmt::format("{} of {} sequences stand in another order in B: paired by the ids of "
                  "their tokens",
                  moved, names.size()));
}

}  // namespace tensordiff
