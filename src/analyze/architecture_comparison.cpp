// architecture_comparison: what kind of model is each, and where do they differ?
//
// From the tensors: family by what they are called and how many axes they have, depth by the
// numbers in names, width and vocabulary by the embedding; heads only where a config says so.

#include <algorithm>
#include <set>

#include "analyze/analysis.h"
#include "analyze/structure.h"
#include "base/text.h"

namespace tensordiff {
namespace {

void add_both(Answer& answer, const std::string& key, std::optional<uint64_t> a,
              std::optional<uint64_t> b) {
  answer.field(key + "_a", a).field(key + "_b", b);
}

// Layers that only one side has, as "3-5, 7".
std::string ranges(const std::set<int64_t>& numbers) {
  std::string text;
  for (auto at = numbers.begin(); at != numbers.end();) {
    const int64_t first = *at;
    int64_t last = first;
    while (++at != numbers.end() && *at == last + 1) last = *at;
    text += (text.empty() ? "" : ", ") + std::to_string(first);
    if (last > first) text += "-" + std::to_string(last);
  }
  return text.empty() ? "none" : text;
}

std::set<int64_t> layers_of(const Catalog& catalog) {
  std::set<int64_t> layers;
  for (const Tensor& tensor : catalog.tensors)
    if (purpose_of(tensor.name, tensor.view.shape) == Purpose::weight)
      if (tensor.place.layer >= 0) layers.insert(tensor.place.layer);
  return layers;
}

std::set<int64_t> without(const std::set<int64_t>& all, const std::set<int64_t>& taken) {
  std::set<int64_t> left;
  std::ranges::set_difference(all, taken, std::inserter(left, left.end()));
  return left;
}

void add_differences(const Study& study, Answer& answer) {
  Listing& list = answer.list("differences", {"tensor", "difference", "a", "b"});
  for (const Subject& pair : study.pairs())
    if (pair.weight() && pair.shape_a != pair.shape_b)
      list.add({pair.name, "reshaped", shape_text(pair.shape_a), shape_text(pair.shape_b)});
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
    answer.missing.push_back("tensors whose names or axes give the family away");
  const std::set<int64_t> layers_a = layers_of(study.a()), layers_b = layers_of(study.b());
  answer.field("layers_added", ranges(without(layers_b, layers_a)));
  answer.field("layers_removed", ranges(without(layers_a, layers_b)));
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
