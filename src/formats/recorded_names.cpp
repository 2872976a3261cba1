#include "formats/recorded_names.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <unordered_map>

#include "naming/naming.h"

namespace tensordiff {
namespace {

// Classes of torch.nn that compute one thing wherever they stand. Those of transformers are called
// after what they are: "NewGELUActivation".
constexpr std::array<std::string_view, 15> kActivations = {
    "CELU", "ELU",   "GELU", "Hardswish", "LeakyReLU", "Mish", "PReLU",    "ReLU",
    "SELU", "ReLU6", "SiLU", "Sigmoid",   "Softplus",  "Tanh", "Hardtanh",
};
constexpr std::string_view kActivation = "Activation";
constexpr std::string_view kEmbedding = "Embedding";

std::optional<Role> role_of_class(std::string_view name) {
  if (name.ends_with(kActivation) || std::ranges::find(kActivations, name) != kActivations.end())
    return Role::activation;
  if (name == kEmbedding) return Role::embedding;
  return std::nullopt;
}

// The class of the module that gave each saved tensor: of those that hand it on, the innermost,
// which ends first.
std::unordered_map<std::string, std::string_view> classes_in(const Trace& trace) {
  const std::span<const Json> tensors = trace.json["tensors"].array();
  std::unordered_map<std::string, std::pair<uint64_t, std::string_view>> first;
  for (const Json& call : trace.json["calls"].array()) {
    const std::optional<uint64_t> end = call["end"].u64(), id = call["out"]["t"].u64();
    if (call["kind"].string() != "module" || !end || !id || *id >= tensors.size()) continue;
    const std::string_view name = tensors[*id]["name"].string();
    if (name.empty()) continue;
    const std::pair<uint64_t, std::string_view> found(*end, call["name"].string());
    const auto [known, added] = first.emplace(trace.folder + std::string(name), found);
    if (!added) known->second = std::min(known->second, found);
  }
  std::unordered_map<std::string, std::string_view> classes;
  for (const auto& [name, found] : first) classes.emplace(name, found.second);
  return classes;
}

using Aliases = std::map<std::string, std::vector<std::string>>;

// The first other name of a tensor that is among some: "same@1" for "gru@1" where the module "gru"
// is "same" as well.
std::optional<std::string> alias_among(const std::set<std::string>& names, const std::string& name,
                                       const Aliases& aliases) {
  for (std::size_t end = name.size(); end > 0; --end) {
    if (end < name.size() && name[end] != '.' && name[end] != '@') continue;
    const auto found = aliases.find(name.substr(0, end));
    if (found == aliases.end()) continue;
    for (const std::string& alias : found->second)
      if (names.contains(alias + name.substr(end))) return alias + name.substr(end);
  }
  return std::nullopt;
}

std::set<std::string> names_of(const Catalog& catalog) {
  std::set<std::string> names;
  for (const Tensor& tensor : catalog.tensors) names.insert(tensor.pairing_name());
  return names;
}

void meet(Catalog& own, const Catalog& other) {
  const Aliases aliases = recorded_run(own).aliases;
  if (aliases.empty()) return;
  const std::set<std::string> theirs = names_of(other);
  std::set<std::string> mine = names_of(own);
  for (Tensor& tensor : own.tensors) {
    if (!tensor.known_as.empty() || theirs.contains(tensor.name)) continue;
    const std::optional<std::string> alias = alias_among(theirs, tensor.name, aliases);
    if (alias && mine.insert(*alias).second) tensor.known_as = *alias;
  }
}

}  // namespace

void read_classes(std::span<const Trace> traces, Catalog& catalog) {
  for (const Trace& trace : traces) {
    const std::unordered_map<std::string, std::string_view> classes = classes_in(trace);
    for (Tensor& tensor : catalog.tensors) {
      const auto found = classes.find(tensor.name);
      if (found == classes.end() || tensor.place.known) continue;
      if (const std::optional<Role> role = role_of_class(found->second)) tensor.place.step = *role;
    }
  }
}

void meet_by_aliases(Catalog& a, Catalog& b) {
  meet(a, b);
  meet(b, a);
}

void add_tied(const RecordedRun& run, Catalog& weights) {
  const std::set<std::string> names = names_of(weights);
  std::vector<Tensor> added;
  for (const Tensor& tensor : weights.tensors) {
    const auto tied = run.tied.find(tensor.name);
    if (tied == run.tied.end()) continue;
    for (const std::string& name : tied->second) {
      if (names.contains(name)) continue;
      added.push_back(tensor);
      added.back().name = name;
      added.back().place = read_place(name);
    }
  }
  std::ranges::move(added, std::back_inserter(weights.tensors));
}

}  // namespace tensordiff
