// Outputs of modules by their paths, as torch hooks collect them: {module path: output}. A module
// that gives a tuple has its numbers behind the path: "model.layers.3.0", "model.layers.3.1".
//
// A number behind a path may also be the name of a module ("mlp.0" of a Sequential). It is an
// output where the path is a layer, a norm, attention or RoPE by its name, and has no tensor
// itself.

#include <algorithm>
#include <set>

#include "dumps/grammar.h"
#include "naming/naming.h"

namespace tensordiff {
namespace {

bool gives_tuples(std::string_view path) {
  const Place place = read_place(path);
  if (path.ends_with(".rotary_emb")) return place.layer >= 0;
  if (!place.known || place.parameter != Param::none || place.expert == Place::kAll) return false;
  return place.step == Role::layer_output || place.step == Role::attention || is_norm(place.step);
}

std::optional<int32_t> output_in(std::string_view& path) {
  std::string_view shorter = path;
  const std::optional<int32_t> output = take_output(shorter);
  if (!output || !gives_tuples(shorter)) return std::nullopt;
  path = shorter;
  return output;
}

bool is_fact(const Tensor& tensor) { return fact_in(tensor, tensor.name) != RunFact::none; }

// Facts or tuples: without them the names are as they are compared.
bool recognises(const Catalog& catalog) {
  std::size_t modules = 0, others = 0;
  for (const Tensor& tensor : catalog.tensors) {
    const Place place = read_place(tensor.name);
    if (place.parameter != Param::none) return false;
    std::string_view path = tensor.name;
    const bool other = is_fact(tensor) || output_in(path).has_value();
    modules += place.known || other;
    others += other;
  }
  return others > 0 && 2 * modules >= catalog.tensors.size();
}

Dump read(const Catalog& catalog) {
  Dump dump;
  std::set<std::string_view> names;
  for (const Tensor& tensor : catalog.tensors) names.insert(tensor.name);
  for (std::size_t i = 0; i < catalog.tensors.size(); ++i) {
    std::string_view path = catalog.tensors[i].name;
    Record record{.tensor = i, .path = std::string(path)};
    record.order = static_cast<int64_t>(i);
    record.fact = fact_in(catalog.tensors[i], path);
    if (const auto output = output_in(path); output && !names.contains(path)) {
      record.output = *output;
      record.path = path;
    }
    dump.records.push_back(std::move(record));
  }
  return dump;
}

}  // namespace

constinit const Layout layouts::module_hooks = {
    .name = "module-hooks",
    .summary = "outputs of modules by path, tuples and (hidden, residual) included",
    .recognises = recognises,
    .read = read,
};

}  // namespace tensordiff
