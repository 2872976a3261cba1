// Each stage of a pipeline has some layers of its own. Some programs number them as in the model;
// then no two stages have the same number. Others count from 0 in each stage (Megatron); then the
// layers of a stage follow those of all stages before it.

#include "match/stages.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <unordered_set>

#include "base/side.h"
#include "naming/naming.h"
#include "naming/rank_name.h"

namespace tensordiff {
namespace {

struct Staged {
  std::size_t tensor = 0;
  uint64_t stage = 0;
  std::string name;                                   // Without the stage.
  std::optional<Place::Digits> layer = std::nullopt;  // Where its number stands.
};

int64_t layer_of(const Staged& staged) {
  int64_t layer = 0;
  const char* const first = staged.name.data() + staged.layer->first;
  std::from_chars(first, first + staged.layer->size, layer);
  return layer;
}

// Tensors that name no stage are of the first one where no others are.
std::vector<Staged> staged_of(const Catalog& catalog) {
  std::vector<Staged> result;
  std::set<uint64_t> stages;
  std::vector<std::optional<RankName>> found;
  for (const Tensor& tensor : catalog.tensors) {
    found.push_back(parse_stage(tensor.name));
    if (found.back()) stages.insert(found.back()->rank);
  }
  if (stages.empty()) return {};
  const bool rest_is_first = !stages.contains(0);
  if (stages.size() + rest_is_first < 2) return {};
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!found[i] && !rest_is_first) continue;
    Staged staged{i, found[i] ? found[i]->rank : 0,
                  found[i] ? found[i]->rest : catalog.tensors[i].name};
    const Place place = read_place(staged.name);
    if (place.layer_named && place.layer >= 0) staged.layer = place.layer_at;
    result.push_back(std::move(staged));
  }
  return result;
}

using LayersOfStage = std::map<uint64_t, std::set<int64_t>>;

LayersOfStage layers_of(const std::vector<Staged>& all) {
  LayersOfStage result;
  for (const Staged& staged : all)
    if (staged.layer) result[staged.stage].insert(layer_of(staged));
  return result;
}

bool count_from_zero(const LayersOfStage& layers) {
  return layers.size() > 1 &&
         std::ranges::all_of(layers, [](const auto& each) { return *each.second.begin() == 0; });
}

}  // namespace

std::vector<std::string> join_stages(Catalog& catalog, char side) {
  std::vector<Staged> all = staged_of(catalog);
  if (all.empty()) return {};
  const LayersOfStage layers = layers_of(all);
  const bool local = count_from_zero(layers);
  std::map<uint64_t, int64_t> before;  // Layers in all stages before this one.
  int64_t sum = 0;
  for (const auto& [stage, numbers] : layers) {
    before[stage] = sum;
    sum += *numbers.rbegin() + 1;  // Of nine digits each.
  }
  std::unordered_set<std::string> taken;
  for (const Tensor& tensor : catalog.tensors) taken.insert(tensor.name);
  for (Staged& staged : all) {
    if (local && staged.layer)
      staged.name.replace(staged.layer->first, staged.layer->size,
                          std::to_string(layer_of(staged) + before[staged.stage]));
    // What two stages have under one name, as an embedding at either end, keeps its stage.
    if (staged.name == catalog.tensors[staged.tensor].name) continue;
    if (taken.insert(staged.name).second) catalog.tensors[staged.tensor].name = staged.name;
  }
  std::set<uint64_t> stages;
  for (const Staged& staged : all) stages.insert(staged.stage);
  return {fmt::format("{} was put together from {} stages of a pipeline{}", capital(side),
                      stages.size(), local ? ", each of which counts its layers from 0" : "")};
}

}  // namespace tensordiff
