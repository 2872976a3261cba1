// similarity_matrix: which layers of b are like which layers of a?
//
//   cosine = mean over the kinds of matrices that all layers have of <x, y> / (‖x‖ ‖y‖)
//   CKA    = mean of the linear centred kernel alignment of the same: blind to rotations of what
//            goes in
// Of patches of 48 rows by 96 columns. Without layers, the matrices themselves take their place.

#include <algorithm>
#include <limits>
#include <map>

#include "analyze/analysis.h"
#include "analyze/patch.h"
#include "base/parallel.h"

namespace tensordiff {
namespace {

constexpr PatchSize kPatch{48, 96};
constexpr std::size_t kUnitsMax = 64;  // Of each side; more makes no picture.

// A layer, or a matrix where there are none: patches and their Gram matrices, by kind.
struct Unit {
  std::string name;
  std::map<std::string, const Subject*> matrices;
  std::map<std::string, std::pair<Dense, Dense>> a, b;  // Patch and Gram matrix.
};

std::vector<Unit> units_of(const Study& study) {
  std::map<int64_t, Unit> layers;
  std::vector<Unit> units;
  std::vector<const Subject*> matrices = study.weights();
  std::erase_if(matrices, [](const Subject* pair) {
    return pair->views.a.shape.size() < 2 || pair->views.a.elements() < 4;
  });
  for (const Subject* pair : matrices) {
    if (!pair->depth) continue;
    layers[*pair->depth].name = std::to_string(*pair->depth);
    layers[*pair->depth].matrices[pattern_of(pair->name, pair->place)] = pair;
  }
  for (auto& [depth, unit] : layers) units.push_back(std::move(unit));
  if (units.size() < 2) {
    units.clear();
    for (const Subject* pair : matrices) units.push_back({pair->name, {{"", pair}}, {}, {}});
  }
  if (units.size() > kUnitsMax) units.resize(kUnitsMax);
  return units;
}

void read(Unit& unit) {
  for (const auto& [kind, pair] : unit.matrices) {
    Result<Dense> a = read_patch(pair->views.a, kPatch), b = read_patch(pair->views.b, kPatch);
    if (!a.ok() || !b.ok()) continue;
    Dense gram_a = row_gram(a.value()), gram_b = row_gram(b.value());
    unit.a[kind] = {std::move(a).value(), std::move(gram_a)};
    unit.b[kind] = {std::move(b).value(), std::move(gram_b)};
  }
}

struct Likeness {
  double cosine = 0, cka = 0, count = 0;
};

Likeness likeness(const Unit& a, const Unit& b) {
  Likeness sum;
  for (const auto& [kind, x] : a.a) {
    const auto y = b.b.find(kind);
    if (y == b.b.end() || y->second.second.rows != x.second.rows) continue;
    if (x.first.values.size() == y->second.first.values.size())
      sum.cosine += cosine(x.first.values, y->second.first.values);
    sum.cka += linear_cka(x.second, y->second.second);
    sum.count += 1;
  }
  return sum;
}

void examine(const Study& study, Answer& answer) {
  std::vector<Unit> units = units_of(study);
  if (units.size() < 2) {
    answer.unknown("diagonal_cosine", "at least two layers or matrices that both sides have");
    return;
  }
  for_each_index(units.size(), [&](std::size_t i) { read(units[i]); });
  const std::size_t n = units.size();
  const double unknown = std::numeric_limits<double>::quiet_NaN();
  std::vector<std::string> names;
  for (const Unit& unit : units) names.push_back(unit.name);
  Chart cosines{Chart::Kind::heat_map,
                "cosine",
                "cosine of layers of a (down) and b",
                names,
                names,
                std::vector<double>(n * n, unknown)};
  Chart ckas{Chart::Kind::heat_map,
             "cka",
             "linear CKA of layers of a (down) and b",
             names,
             names,
             std::vector<double>(n * n, unknown)};
  for_each_index(n * n, [&](std::size_t i) {
    const Likeness found = likeness(units[i / n], units[i % n]);
    if (found.count == 0) return;
    cosines.values[i] = found.cosine / found.count;
    ckas.values[i] = found.cka / found.count;
  });
  double cosine_sum = 0, cka_sum = 0;
  Listing moved{"like_another", {"layer_b", "layer_a", "cosine", "cosine_with_its_own"}, {}, 0};
  for (std::size_t b = 0; b < n; ++b) {
    cosine_sum += cosines.values[b * n + b];
    cka_sum += ckas.values[b * n + b];
    std::size_t best = b;
    for (std::size_t a = 0; a < n; ++a)
      if (cosines.values[a * n + b] > cosines.values[best * n + b]) best = a;
    if (best != b)
      moved.add({names[b], names[best], cosines.values[best * n + b], cosines.values[b * n + b]});
  }
  answer.field("units", n).field("diagonal_cosine", cosine_sum / static_cast<double>(n));
  answer.field("diagonal_cka", cka_sum / static_cast<double>(n));
  answer.field("like_another_in_all", moved.rows_in_all);
  answer.lists.push_back(std::move(moved));
  answer.charts.push_back(std::move(cosines));
  answer.charts.push_back(std::move(ckas));
  answer.notes.push_back("from at most 48 rows by 96 columns of each matrix");
}

}  // namespace

constinit const Analysis analyses::similarity_matrix = {
    .name = "similarity_matrix",
    .flag = "--similarity-matrix",
    .question = "Which layers of b are like which layers of a?",
    .definition = "cosine and linear CKA of each layer of a with each of b, as heat maps",
    .examine = examine,
};

}  // namespace tensordiff
