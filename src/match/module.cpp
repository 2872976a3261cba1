// Pairs the other parameters of modules that have a pair already: where "seq.2.dense.weight" is
// "layers.0.dense.weight", "seq.2.dense.bias" is "layers.0.dense.bias", whatever is in it.

#include <map>
#include <set>

#include "match/checkpoint.h"
#include "match/matcher.h"
#include "match/one_to_one.h"

namespace tensordiff {
namespace {

// "layers.0.dense" and "bias".
struct Split {
  std::string module, leaf;
};

// PyTorch keeps what a parameter is computed from in a module of its own.
constexpr std::string_view kParametrized = ".parametrizations.";

Split split_name(const std::string& name) {
  const std::size_t at = std::min(name.find(kParametrized), name.find_last_of("./"));
  if (at == std::string::npos || at == 0) return {"", name};
  return {name.substr(0, at), name.substr(at + 1)};
}

// Which module of B a module of A is, as far as all pairs made so far agree.
OneToOne modules_of(const MatchInput& input) {
  OneToOne modules;
  for (const Pair& pair : *input.pairs) {
    if (pair.section_a || pair.section_b || pair.tied) continue;
    const std::string a = split_name(input.side_a.names[pair.a]).module;
    const std::string b = split_name(input.side_b.names[pair.b]).module;
    if (!a.empty() && !b.empty()) modules.learn(a, b);
  }
  return modules;
}

// "weight" of PyTorch and "kernel" of Flax are one parameter.
std::string parameter_of(const std::string& leaf, const Place& place) {
  return place.parameter == Param::none ? leaf : std::string(name_of(place.parameter));
}

Result<Proposal> propose(const MatchInput& input) {
  Proposal proposal;
  if (input.free_a.empty() || input.free_b.empty() || !are_checkpoints(input.a, input.b))
    return proposal;
  using Key = std::pair<std::string, std::string>;
  std::map<Key, std::vector<std::size_t>> free_b;
  for (const std::size_t b : input.free_b) {
    const auto [module, leaf] = split_name(input.side_b.names[b]);
    free_b[{module, parameter_of(leaf, input.side_b.places[b])}].push_back(b);
  }
  const OneToOne modules = modules_of(input);
  std::set<std::size_t> taken;
  for (const std::size_t a : input.free_a) {
    const auto [module, leaf] = split_name(input.side_a.names[a]);
    const std::string* partner = modules.partner(module);
    if (!partner) continue;
    const auto found = free_b.find({*partner, parameter_of(leaf, input.side_a.places[a])});
    if (found == free_b.end() || found->second.size() != 1) continue;
    if (!taken.insert(found->second[0]).second) continue;
    proposal.pairs.push_back(
        {.a = a, .b = found->second[0], .layer = {}, .stage = {}, .matched_by = {}});
  }
  return proposal;
}

}  // namespace

constinit const Matcher matchers::module = {
    .name = "module",
    .summary = "other parameters of their modules are paired",
    .propose = propose,
};

}  // namespace tensordiff
