// Pairs names that agree once the wrappers of a model are dropped from their start: "module.norm"
// and "norm", and then the start that all names of a side share: "student.norm" and "norm".

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>

#include "match/matcher.h"
#include "match/meaning.h"

namespace tensordiff {
namespace {

constexpr std::array<std::string_view, 8> kWrappers = {
    "model.", "module.",     "_orig_mod.",   "state_dict.",
    "model/", "base_model.", "transformer.", "_forward_module.",
};

std::string_view without_wrappers(std::string_view name) {
  for (std::size_t i = 0; i < kWrappers.size();) {
    if (name.starts_with(kWrappers[i])) {
      name.remove_prefix(kWrappers[i].size());
      i = 0;
    } else {
      ++i;
    }
  }
  return name;
}

// What all names of a side start with, up to and with a dot or slash.
std::string_view common_start(const std::vector<std::string>& names) {
  if (names.size() < 2) return {};
  std::string_view common = names[0];
  for (const std::string& name : names) {
    const auto parts = std::ranges::mismatch(common, name);
    common = common.substr(0, static_cast<std::size_t>(parts.in1 - common.begin()));
  }
  const std::size_t end = common.find_last_of("./");
  return end == std::string_view::npos ? std::string_view() : common.substr(0, end + 1);
}

// By what is left of the name. Nothing where two names leave the same.
using ByCore = std::unordered_map<std::string_view, std::optional<std::size_t>>;

ByCore by_core(const std::vector<std::string>& names, const std::vector<std::size_t>& free) {
  const std::string_view common = common_start(names);
  ByCore result;
  for (const std::size_t tensor : free) {
    const std::string_view name = names[tensor];
    const auto [at, first] = result.emplace(without_wrappers(name.substr(common.size())), tensor);
    if (!first) at->second.reset();
  }
  return result;
}

Result<Proposal> propose(const MatchInput& input) {
  const ByCore of_b = by_core(input.side_b.names, input.free_b);
  const ByCore of_a = by_core(input.side_a.names, input.free_a);
  const std::string_view common = common_start(input.side_a.names);
  Proposal proposal;
  for (const std::size_t a : input.free_a) {
    const std::string_view name = input.side_a.names[a];
    const std::string_view core = without_wrappers(name.substr(common.size()));
    const auto found = of_b.find(core);
    if (found == of_b.end() || !found->second || !of_a.at(core)) continue;
    if (is_other_activation(input.side_a.places[a], input.side_b.places[*found->second])) continue;
    proposal.pairs.push_back(
        {.a = a, .b = *found->second, .layer = {}, .stage = {}, .matched_by = {}});
  }
  return proposal;
}

}  // namespace

constinit const Matcher matchers::prefix = {
    .name = "prefix",
    .summary = "the names agree once wrappers such as 'module.' are dropped",
    .propose = propose,
};

}  // namespace tensordiff
