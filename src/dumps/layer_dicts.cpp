// A list over the layers, of a dict or an object with the steps of each: "0.attn_out", "0.mlp_out",
// "1.attn_out", …; or a dict with the numbers of layers for keys.
//
// A number in front may also be that of a pass. It is the layer where what stands behind it names
// steps in a layer, and not the layer itself, and where each number has the same of them.

#include <map>
#include <set>

#include <fmt/format.h>

#include "dumps/grammar.h"
#include "naming/naming.h"

namespace tensordiff {
namespace {

struct InLayer {
  int32_t layer = 0;
  std::string_view step;
};

std::optional<InLayer> parse(std::string_view name) {
  std::string_view step = name;
  const std::optional<int32_t> layer = whole_number(take_until(step, "."));
  if (!layer || step.empty() || (step[0] >= '0' && step[0] <= '9')) return std::nullopt;
  return InLayer{*layer, step};
}

Place place_of(const InLayer& found) {
  return read_place(fmt::format("layers.{}.{}", found.layer, found.step));
}

bool is_step(const InLayer& found) {
  const Place place = place_of(found), alone = read_place(found.step);
  return place.known && place.step != Role::other && place.parameter == Param::none &&
         place.expert == Place::kNone && alone.layer < 0 && place.layer == found.layer;
}

bool recognises(const Catalog& catalog) {
  std::map<int32_t, std::set<std::string_view>> steps;
  std::size_t numbered = 0, known = 0;
  for (const Tensor& tensor : catalog.tensors) {
    const std::optional<InLayer> found = parse(tensor.name);
    if (!found || fact_in(tensor, tensor.name) != RunFact::none) continue;
    ++numbered;
    known += is_step(*found);
    steps[found->layer].insert(found->step);
  }
  if (steps.size() < 2 || 2 * numbered < catalog.tensors.size() || 2 * known <= numbered)
    return false;
  const auto last = static_cast<std::size_t>(steps.rbegin()->first - steps.begin()->first);
  if (last + 1 != steps.size()) return false;
  for (const auto& [layer, names] : steps)
    if (names != steps.begin()->second) return false;
  return true;
}

Dump read(const Catalog& catalog) {
  Dump dump;
  for (std::size_t i = 0; i < catalog.tensors.size(); ++i) {
    const Tensor& tensor = catalog.tensors[i];
    Record record{.tensor = i, .path = tensor.name};
    record.fact = fact_in(tensor, tensor.name);
    if (const std::optional<InLayer> found = parse(tensor.name)) {
      record.path = fmt::format("layers.{}.{}", found->layer, found->step);
      record.order = order_by_role(found->layer, place_of(*found).step);
    } else {
      const bool first = read_place(tensor.name).step <= Role::embedding_norm;
      record.order = first ? -1 : INT64_MAX;
    }
    dump.records.push_back(std::move(record));
  }
  return dump;
}

}  // namespace

constinit const Layout layouts::layer_dicts = {
    .name = "layer-dicts",
    .summary = "a list over the layers, with the steps of each: 0.attn_out, 0.mlp_out",
    .recognises = recognises,
    .read = read,
};

}  // namespace tensordiff
