// similarity_matrix: which layers of B are like which layers of A?
//
//   cosine = mean over the kinds of matrices that two layers have of <x, y> / (‖x‖ ‖y‖)
//   CKA    = mean of the linear centred kernel alignment of the same: blind to rotations of what
//            goes in
// Of patches of 48 rows by 96 columns, of all layers of both sides, paired or not. Without layers,
// the matrices themselves take their place.

#include <algorithm>
#include <cmath>
#include <limits>

#include "analyze/analysis.h"
#include "analyze/layer_map.h"
#include "analyze/patch.h"
#include "base/parallel.h"

namespace tensordiff {
namespace {

constexpr std::size_t kUnitsMax = 64;  // Of each side; more makes no picture.

// Matrices that both sides have, each by itself.
LayerSketches sketch_matrices(const Study& study) {
  LayerSketches all;
  for (const Row* pair : study.weights()) {
    if (pair->views.a.shape.size() < 2 || pair->views.a.elements() < 4) continue;
    if (all.a.size() == kUnitsMax) break;
    constexpr PatchSize kPatch{48, 96};
    Result<Dense> a = read_patch(pair->views.a, kPatch), b = read_patch(pair->views.b, kPatch);
    if (!a.ok() || !b.ok()) continue;
    Dense gram_a = row_gram(a.value()), gram_b = row_gram(b.value());
    const auto number = static_cast<int64_t>(all.a.size());
    all.a.push_back({pair->a.name, number, {}, {}});
    all.b.push_back({pair->a.name, number, {}, {}});
    all.a.back().matrices[""] = {std::move(a).value(), std::move(gram_a)};
    all.b.back().matrices[""] = {std::move(b).value(), std::move(gram_b)};
  }
  return all;
}

std::vector<std::string> names_of(const std::vector<LayerSketch>& layers) {
  std::vector<std::string> names;
  for (const LayerSketch& layer : layers) names.push_back(layer.name);
  return names;
}

Chart map_of(const LayerSketches& all, std::string name, std::string title) {
  return {
      Chart::Kind::heat_map,
      std::move(name),
      std::move(title),
      names_of(all.b),
      names_of(all.a),
      std::vector<double>(all.a.size() * all.b.size(), std::numeric_limits<double>::quiet_NaN())};
}

// The row of the layer of A with this number; nothing where there is none.
std::optional<std::size_t> own_row(const LayerSketches& all, int64_t number) {
  const auto found = std::ranges::find(all.a, number, &LayerSketch::number);
  if (found == all.a.end()) return std::nullopt;
  return static_cast<std::size_t>(found - all.a.begin());
}

struct Maps {
  Chart cosines, ckas;
};

void add_fields(const LayerSketches& all, const Maps& maps, Answer& answer) {
  const std::size_t n = all.b.size();
  double cosine_sum = 0, cka_sum = 0, own = 0;
  Listing moved{"like_another", {"layer_b", "layer_a", "cosine", "cosine_with_its_own"}, {}, 0};
  for (std::size_t b = 0; b < n; ++b) {
    const auto at = [&](std::size_t a) { return maps.cosines.values[a * n + b]; };
    const std::optional<std::size_t> same = own_row(all, all.b[b].number);
    if (same && std::isfinite(at(*same))) {
      cosine_sum += at(*same);
      cka_sum += maps.ckas.values[*same * n + b];
      own += 1;
    }
    std::size_t best = same.value_or(0);
    for (std::size_t a = 0; a < all.a.size(); ++a)
      if (at(a) > at(best) || !std::isfinite(at(best))) best = a;
    if (best != same && std::isfinite(at(best)))
      moved.add({all.b[b].name, all.a[best].name, at(best), same ? Datum(at(*same)) : Datum()});
  }
  answer.field("units", n);
  answer.field("diagonal_cosine", own > 0 ? Datum(cosine_sum / own) : Datum());
  answer.field("diagonal_cka", own > 0 ? Datum(cka_sum / own) : Datum());
  answer.field("like_another_in_all", moved.rows_in_all);
  answer.lists.push_back(std::move(moved));
}

void examine(const Study& study, Answer& answer) {
  LayerSketches all = sketch_layers(study);
  if (all.a.size() < 2 || all.b.size() < 2) all = sketch_matrices(study);
  if (all.a.size() > kUnitsMax) all.a.resize(kUnitsMax);
  if (all.b.size() > kUnitsMax) all.b.resize(kUnitsMax);
  if (all.a.size() < 2 || all.b.size() < 2) {
    answer.unknown("diagonal_cosine", "at least two layers or matrices that both sides have");
    return;
  }
  Maps maps{map_of(all, "cosine", "cosine of layers of A (down) and B"),
            map_of(all, "cka", "linear CKA of layers of A (down) and B")};
  const std::size_t n = all.b.size();
  for_each_index(all.a.size() * n, [&](std::size_t i) {
    const Likeness found = likeness(all.a[i / n], all.b[i % n]);
    if (found.count == 0) return;
    maps.cosines.values[i] = found.cosine;
    maps.ckas.values[i] = found.cka;
  });
  add_fields(all, maps, answer);
  answer.charts.push_back(std::move(maps.cosines));
  answer.charts.push_back(std::move(maps.ckas));
  answer.notes.push_back("from at most 48 rows by 96 columns of each matrix");
}

}  // namespace

constinit const Analysis analyses::similarity_matrix = {
    .name = "similarity_matrix",
    .flag = "--similarity-matrix",
    .question = "Which layers of B are like which layers of A?",
    .definition = "cosine and linear CKA of each layer of A with each of B, as heat maps",
    .examine = examine,
};

}  // namespace tensordiff
