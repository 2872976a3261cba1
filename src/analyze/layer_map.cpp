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
constexpr std::size_t kLayersMax = 128;
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
  while (layers.size() > kLayersMax) layers.erase(std::prev(layers.end()));
  return layers;
}

std::vector<LayerSketch> sketches_of(const Layers& layers) {
  std::vector<std::pair<int64_t, const std::vector<Source>*>> order;
  for (const auto& [number, sources] : layers) order.emplace_back(number, &sources);
  std::vector<LayerSketch> sketches(order.size());
  for_each_index(order.size(), [&](std::size_t i) {
    sketches[i].name = std::to_string(order[i].first);
    sketches[i].number = order[i].first;
    for (const Source& source : *order[i].second)
      if (std::optional<MatrixSketch> sketch = sketch_of(source.view))
        sketches[i].matrices[source.kind] = std::move(*sketch);
  });
  return sketches;
}

Likenesses like_layers(const Study& study) {
  std::unordered_map<std::string, View> aligned_a, aligned_b;
  std::unordered_map<std::string, std::string> kinds;  // They go by the names of A.
  for (const Row* pair : study.weights()) {
    aligned_a.emplace(pair->a.name, pair->views.a);
    aligned_b.emplace(pair->b.name, pair->views.b);
    kinds.emplace(pattern_of(pair->b.name, pair->b.place), pattern_of(pair->a.name, pair->a.place));
  }
  return likenesses(sketches_of(layers_of(study.a(), aligned_a, {})),
                    sketches_of(layers_of(study.b(), aligned_b, kinds)));
}

Likeness likeness(const LayerSketch& a, const LayerSketch& b) {
  Likeness sum;
  for (const auto& [kind, x] : a.matrices) {
    const auto found = b.matrices.find(kind);
    if (found == b.matrices.end() || found->second.shape != x.shape) continue;
    const MatrixSketch& y = found->second;
    if (x.values.values.size() == y.values.values.size())
      sum.cosine += std::clamp(dot(x.values.values, y.values.values), -1.0, 1.0);
    sum.cka += std::clamp(dot(x.gram.values, y.gram.values), 0.0, 1.0);
    sum.count += 1;
  }
  if (sum.count > 0) sum.cosine /= sum.count, sum.cka /= sum.count;
  return sum;
}

}  // namespace

std::optional<MatrixSketch> sketch_of(const View& view) {
  Result<Dense> patch = read_patch(view, kPatch);
  if (!patch.ok()) return std::nullopt;
  MatrixSketch sketch{view.shape, std::move(patch).value(), {}};
  make_unit(sketch.values.values);
  sketch.gram = centred(row_gram(sketch.values));
  return sketch;
}

Likenesses likenesses(const std::vector<LayerSketch>& a, const std::vector<LayerSketch>& b) {
  Likenesses all;
  for (const LayerSketch& each : a) all.names_a.push_back(each.name), all.a.push_back(each.number);
  for (const LayerSketch& each : b) all.names_b.push_back(each.name), all.b.push_back(each.number);
  all.values.resize(a.size() * b.size());
  for_each_index(all.values.size(), [&](std::size_t i) {
    all.values[i] = likeness(a[i / b.size()], b[i % b.size()]);
  });
  return all;
}

LayerMap map_layers(const Study& study) {
  LayerMap map;
  map.like = like_layers(study);
  const Likenesses& all = map.like;
  map.from.assign(all.b.size(), -1);
  for (std::size_t b = 0; b < all.b.size(); ++b) {
    double best = kLike;
    for (std::size_t a = 0; a < all.a.size(); ++a) {
      double found = all.at(a, b).cosine;
      // Of equal ones, that of its own number.
      if (all.a[a] == all.b[b]) found += 1e-9;
      if (found <= best) continue;
      best = found;
      map.from[b] = all.a[a];
    }
  }
  for (const int64_t number : all.a) {
    const auto uses = std::ranges::count(map.from, number);
    if (uses == 0) map.dropped.push_back(number);
    if (uses > 1) map.repeated.push_back(number);
  }
  for (std::size_t b = 0; b < all.b.size(); ++b)
    map.moved |= map.from[b] >= 0 && map.from[b] != all.b[b];
  return map;
}

bool LayerMap::restacked() const {
  const bool any = std::ranges::any_of(from, [](int64_t each) { return each >= 0; });
  return any && like.a.size() > 1 &&
         (moved || !repeated.empty() || (!dropped.empty() && like.a != like.b));
}

std::vector<double> LayerMap::cosines() const {
  std::vector<double> cosines;
  for (const Likeness& each : like.values)
    cosines.push_back(each.count > 0 ? each.cosine : std::numeric_limits<double>::quiet_NaN());
  return cosines;
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
