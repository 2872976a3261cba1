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
Likenesses like_matrices(const Study& study) {
  std::vector<LayerSketch> all_a, all_b;
  for (const Row* pair : study.weights()) {
    if (pair->views.a.shape.size() < 2 || pair->views.a.elements() < 4) continue;
    if (all_a.size() == kUnitsMax) break;
    std::optional<MatrixSketch> a = sketch_of(pair->views.a), b = sketch_of(pair->views.b);
    if (!a || !b) continue;
    // As many rows are all that CKA asks of two matrices of different kinds.
    a->shape = {a->values.rows};
    b->shape = {b->values.rows};
    const auto number = static_cast<int64_t>(all_a.size());
    all_a.push_back({pair->a.name, number, {}});
    all_b.push_back({pair->a.name, number, {}});
    all_a.back().matrices[""] = std::move(*a);
    all_b.back().matrices[""] = std::move(*b);
  }
  return likenesses(all_a, all_b);
}

template <class T>
std::vector<T> first_of(const std::vector<T>& all) {
  return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(kUnitsMax, all.size()))};
}

// The first layers of each side, as many as a picture can show.
Likenesses first_layers(const Likenesses& all) {
  Likenesses some{
      first_of(all.names_a), first_of(all.names_b), first_of(all.a), first_of(all.b), {}};
  for (std::size_t a = 0; a < some.a.size(); ++a)
    for (std::size_t b = 0; b < some.b.size(); ++b) some.values.push_back(all.at(a, b));
  return some;
}

Chart map_of(const Likenesses& all, std::string name, std::string title, double Likeness::*what) {
  Chart chart{Chart::Kind::heat_map, std::move(name), std::move(title),
              all.names_b,           all.names_a,     {}};
  for (const Likeness& each : all.values)
    chart.values.push_back(each.count > 0 ? each.*what : std::numeric_limits<double>::quiet_NaN());
  return chart;
}

// The row of the layer of A with this number; nothing where there is none.
std::optional<std::size_t> own_row(const Likenesses& all, int64_t number) {
  const auto found = std::ranges::find(all.a, number);
  if (found == all.a.end()) return std::nullopt;
  return static_cast<std::size_t>(found - all.a.begin());
}

struct Maps {
  Chart cosines, ckas;
};

void add_fields(const Likenesses& all, const Maps& maps, Answer& answer) {
  const std::size_t n = all.b.size();
  double cosine_sum = 0, cka_sum = 0, own = 0;
  Listing moved{"like_another", {"layer_b", "layer_a", "cosine", "cosine_with_its_own"}, {}, 0};
  for (std::size_t b = 0; b < n; ++b) {
    const auto at = [&](std::size_t a) { return maps.cosines.values[a * n + b]; };
    const std::optional<std::size_t> same = own_row(all, all.b[b]);
    if (same && std::isfinite(at(*same))) {
      cosine_sum += at(*same);
      cka_sum += maps.ckas.values[*same * n + b];
      own += 1;
    }
    std::size_t best = same.value_or(0);
    for (std::size_t a = 0; a < all.a.size(); ++a)
      if (at(a) > at(best) || !std::isfinite(at(best))) best = a;
    if (best != same && std::isfinite(at(best)))
      moved.add({all.names_b[b], all.names_a[best], at(best), same ? Datum(at(*same)) : Datum()});
  }
  answer.field("units", n);
  answer.field("diagonal_cosine", own > 0 ? Datum(cosine_sum / own) : Datum());
  answer.field("diagonal_cka", own > 0 ? Datum(cka_sum / own) : Datum());
  answer.field("like_another_in_all", moved.rows_in_all);
  answer.lists.push_back(std::move(moved));
}

void examine(const Study& study, Answer& answer) {
  Likenesses all = first_layers(study.layer_map().like);
  if (all.a.size() < 2 || all.b.size() < 2) all = like_matrices(study);
  if (all.a.size() < 2 || all.b.size() < 2) {
    answer.unknown("diagonal_cosine", "at least two layers or matrices that both sides have");
    return;
  }
  Maps maps{map_of(all, "cosine", "cosine of layers of A (down) and B", &Likeness::cosine),
            map_of(all, "cka", "linear CKA of layers of A (down) and B", &Likeness::cka)};
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
