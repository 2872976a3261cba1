// architecture_comparison: what kind of model is each, and where do they differ?
//
// From the tensors: family by what they are called and how many axes they have, depth by the
// numbers in names, width and vocabulary by the embedding; heads only where a config says so.

#include <algorithm>
#include <set>

#include "analyze/analysis.h"
#include "analyze/edit.h"
#include "analyze/layer_map.h"
#include "analyze/structure.h"
#include "base/text.h"

namespace tensordiff {
namespace {

void add_both(Answer& answer, const std::string& key, std::optional<uint64_t> a,
              std::optional<uint64_t> b) {
  answer.field(key + "_a", a).field(key + "_b", b);
}

std::string ranges(const std::vector<int64_t>& numbers) {
  const std::string text = ranges_text(numbers);
  return text.empty() ? "none" : text;
}

std::set<int64_t> layers_of(const Catalog& catalog) {
  std::set<int64_t> layers;
  for (const Tensor& tensor : catalog.tensors)
    if (purpose_of(tensor.name, tensor.view.shape) == Purpose::weight)
      if (tensor.place.layer >= 0) layers.insert(tensor.place.layer);
  return layers;
}

std::vector<int64_t> without(const std::set<int64_t>& all, const std::set<int64_t>& taken) {
  std::vector<int64_t> left;
  std::ranges::set_difference(all, taken, std::back_inserter(left));
  return left;
}

constexpr std::size_t kDrawnMax = 64;  // Layers of each side; more makes no picture.

// Where each layer of B comes from, by its values.
void add_layer_map(const Study& study, Answer& answer) {
  const LayerMap& map = study.layer_map();
  const std::vector<int64_t>&of_a = map.like.a, &of_b = map.like.b;
  if (of_a.size() < 2 || of_b.empty()) return;
  const bool any = std::ranges::any_of(map.from, [](int64_t from) { return from >= 0; });
  if (!any) {
    answer.unknown("layer_map", "layers of B that are like one of A");
    return;
  }
  const bool same = !map.moved && map.dropped.empty() && of_a == of_b &&
                    std::ranges::find(map.from, -1) == map.from.end();
  answer.field("layer_map", same ? "each from its own" : map.text());
  answer.field("layers_dropped", ranges(map.dropped));
  answer.field("layers_repeated", ranges(map.repeated));
  Listing& list = answer.list("layers_from", {"layer_b", "from_a"});
  for (std::size_t i = 0; i < of_b.size() && !same; ++i)
    list.add({of_b[i], map.from[i] >= 0 ? Datum(map.from[i]) : Datum()});
  if (same || of_a.size() > kDrawnMax || of_b.size() > kDrawnMax) return;
  answer.charts.push_back({Chart::Kind::heat_map, "layer_map",
                           "layers of B (across) by those of A (down) that they are like",
                           map.like.names_b, map.like.names_a, map.cosines()});
}

void add_differences(const Study& study, Answer& answer) {
  Listing& list = answer.list("differences", {"tensor", "difference", "a", "b"});
  for (const Row* pair : study.pairs())
    if (is_weight(*pair) && pair->a.shape != pair->b.shape)
      list.add({pair->a.name, "reshaped", shape_text(pair->a.shape), shape_text(pair->b.shape)});
  for (const Tensor* tensor : study.only_a())
    list.add({tensor->name, "removed", shape_text(tensor->view.shape), Datum()});
  for (const Tensor* tensor : study.only_b())
    list.add({tensor->name, "added", Datum(), shape_text(tensor->view.shape)});
  answer.field("differences_in_all", list.rows_in_all);
}

void examine(const Study& study, Answer& answer) {
  const Structure a = structure_of(study.a(), study.facts_a());
  const Structure b = structure_of(study.b(), study.facts_b());
  answer.field("type1", name_of(a.family)).field("type2", name_of(b.family));
  add_both(answer, "parameters", a.parameters, b.parameters);
  add_both(answer, "layers", a.layers, b.layers);
  add_both(answer, "width", a.width, b.width);
  add_both(answer, "vocabulary", a.vocabulary, b.vocabulary);
  add_both(answer, "heads", a.heads, b.heads);
  add_both(answer, "experts", a.experts, b.experts);
  const bool attention = attends(a.family) || attends(b.family);
  if (attention && (!a.heads || !b.heads))
    answer.missing.push_back("config.json or metadata with the number of attention heads");
  if (a.family == Family::unknown || b.family == Family::unknown)
    answer.missing.push_back("tensors whose names or axes identify the family");
  const std::set<int64_t> layers_a = layers_of(study.a()), layers_b = layers_of(study.b());
  answer.field("layers_added", ranges(without(layers_b, layers_a)));
  answer.field("layers_removed", ranges(without(layers_a, layers_b)));
  add_layer_map(study, answer);
  add_differences(study, answer);
  std::map<std::string_view, uint64_t> parts = a.by_part;
  parts.insert(b.by_part.begin(), b.by_part.end());
  Listing& list = answer.list("parameters_in", {"part", "a", "b"});
  const auto in = [](const Structure& side, std::string_view part) {
    const auto found = side.by_part.find(part);
    return found == side.by_part.end() ? uint64_t{0} : found->second;
  };
  for (const auto& [part, count] : parts) list.add({part, in(a, part), in(b, part)});
}

}  // namespace

constinit const Analysis analyses::architecture_comparison = {
    .name = "architecture_comparison",
    .flag = "--architecture-comparison",
    .question = "What kind of model is each, and where do they differ in structure?",
    .definition = "family, depth, width, heads, vocabulary, experts; layers added and removed",
    .examine = examine,
};

}  // namespace tensordiff
