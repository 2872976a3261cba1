#include "analyze/layer_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "analyze/patch.h"
#include "base/parallel.h"

namespace tensordiff {
namespace {

constexpr PatchSize kPatch{48, 96};
// Layers of one model that were not made from each other have cosines of about 0; training moves
// them by a few per cent, and 4 bits leave 0.99.
constexpr double kLike = 0.5;

struct Source {
  std::string kind;
  View view;
};
using Layers = std::map<int64_t, std::vector<Source>>;

bool counts(const Tensor& tensor) {
  return tensor.fault.empty() && tensor.shards.empty() && tensor.auxiliary.empty() &&
         tensor.place.layer >= 0 && tensor.view.shape.size() >= 2 && tensor.elements() >= 4 &&
         !is_complex(tensor.view.dtype) && !is_undecoded(tensor.view.dtype) &&
         purpose_of(tensor.name, tensor.view.shape) == Purpose::weight;
}

// Views of one side: as they were aligned where they were, else as stored.
Layers layers_of(const Catalog& catalog, const std::unordered_map<std::string, View>& aligned,
                 const std::unordered_map<std::string, std::string>& kinds) {
  Layers layers;
  for (const Tensor& tensor : catalog.tensors) {
    if (!counts(tensor)) continue;
    std::string kind = pattern_of(tensor.name, id_of(tensor).place);
    if (const auto known = kinds.find(kind); known != kinds.end()) kind = known->second;
    const auto view = aligned.find(tensor.name);
    layers[tensor.place.layer].push_back(
        {std::move(kind), view == aligned.end() ? tensor.view : view->second});
  }
  while (layers.size() > kSketchesMax) layers.erase(std::prev(layers.end()));
  return layers;
}

std::vector<LayerSketch> sketches_of(const Layers& layers) {
  std::vector<std::pair<int64_t, const std::vector<Source>*>> order;
  for (const auto& [number, sources] : layers) order.emplace_back(number, &sources);
  std::vector<LayerSketch> sketches(order.size());
  for_each_index(order.size(), [&](std::size_t i) {
    sketches[i].name = std::to_string(order[i].first);
    sketches[i].number = order[i].first;
    for (const Source& source : *order[i].second) {
      Result<Dense> patch = read_patch(source.view, kPatch);
      if (!patch.ok()) continue;
      Dense gram = row_gram(patch.value());
      sketches[i].shapes[source.kind] = source.view.shape;
      sketches[i].matrices[source.kind] = {std::move(patch).value(), std::move(gram)};
    }
  });
  return sketches;
}

}  // namespace

LayerSketches sketch_layers(const Study& study) {
  std::unordered_map<std::string, View> aligned_a, aligned_b;
  std::unordered_map<std::string, std::string> kinds;
  for (const Row* pair : study.weights()) {
    aligned_a.emplace(pair->a.name, pair->views.a);
    aligned_b.emplace(pair->b.name, pair->views.b);
    kinds.emplace(pattern_of(pair->b.name, pair->b.place), pattern_of(pair->a.name, pair->a.place));
  }
  return {sketches_of(layers_of(study.a(), aligned_a, {})),
          sketches_of(layers_of(study.b(), aligned_b, kinds))};
}

Likeness likeness(const LayerSketch& a, const LayerSketch& b) {
  Likeness sum;
  for (const auto& [kind, x] : a.matrices) {
    const auto y = b.matrices.find(kind);
    if (y == b.matrices.end() || y->second.second.rows != x.second.rows) continue;
    const auto shape_a = a.shapes.find(kind), shape_b = b.shapes.find(kind);
    const bool known = shape_a != a.shapes.end() && shape_b != b.shapes.end();
    if (known && shape_a->second != shape_b->second) continue;
    if (x.first.values.size() == y->second.first.values.size())
      sum.cosine += cosine(x.first.values, y->second.first.values);
    sum.cka += linear_cka(x.second, y->second.second);
    sum.count += 1;
  }
  if (sum.count > 0) sum.cosine /= sum.count, sum.cka /= sum.count;
  return sum;
}

LayerMap map_layers(const Study& study) {
  const LayerSketches all = sketch_layers(study);
  LayerMap map;
  for (const LayerSketch& layer : all.a) map.a.push_back(layer.number);
  for (const LayerSketch& layer : all.b) map.b.push_back(layer.number);
  map.from.assign(all.b.size(), -1);
  map.cosines.assign(all.a.size() * all.b.size(), std::numeric_limits<double>::quiet_NaN());
  for_each_index(all.b.size(), [&](std::size_t b) {
    double best = kLike;
    for (std::size_t a = 0; a < all.a.size(); ++a) {
      const Likeness like = likeness(all.a[a], all.b[b]);
      if (like.count > 0) map.cosines[a * all.b.size() + b] = like.cosine;
      double found = like.cosine;
      // Of equal ones, that of its own number.
      if (all.a[a].number == all.b[b].number) found += 1e-9;
      if (found <= best) continue;
      best = found;
      map.from[b] = all.a[a].number;
    }
  });
  for (const int64_t number : map.a) {
    const auto uses = std::ranges::count(map.from, number);
    if (uses == 0) map.dropped.push_back(number);
    if (uses > 1) map.repeated.push_back(number);
  }
  for (std::size_t b = 0; b < map.b.size(); ++b)
    map.moved |= map.from[b] >= 0 && map.from[b] != map.b[b];
  return map;
}

bool LayerMap::restacked() const {
  const bool any = std::ranges::any_of(from, [](int64_t each) { return each >= 0; });
  return any && a.size() > 1 && (moved || !repeated.empty() || (!dropped.empty() && a != b));
}

std::string LayerMap::text() const {
  std::string out;
  for (std::size_t i = 0; i < from.size();) {
    std::size_t end = i;
    while (end + 1 < from.size() &&
           (from[i] < 0 ? from[end + 1] < 0 : from[end + 1] == from[end] + 1))
      ++end;
    if (!out.empty()) out += ", ";
    if (from[i] < 0)
      out += fmt::format("{} of none of A", end - i + 1);
    else
      out += end == i ? fmt::format("A {}", from[i]) : fmt::format("A {}-{}", from[i], from[end]);
    i = end + 1;
  }
  return out;
}

}  // namespace tensordiff
