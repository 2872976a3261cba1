// clustering_change: do rows of the weights still belong together as they did?
//
//   clusters  = k-means of up to 192 rows (of 64 columns) of a matrix; k from 2 to 16, where a's
//               structure is largest
//   agreement = adjusted Rand index of the clusters in a and in b: 1 the same, about 0 unrelated
//   structure = 1 − variance within clusters / the same once each column is shuffled by itself; a
//               matrix without structure has no clusters to keep

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "analyze/analysis.h"
#include "analyze/clusters.h"
#include "analyze/patch.h"
#include "base/parallel.h"

namespace tensordiff {
namespace {

constexpr PatchSize kPatch{192, 64};
constexpr std::size_t kClustersMax = 16;  // Of at most 192 rows: a dozen in each.
constexpr std::size_t kRowsMin = 24;      // Fewer make no clusters.
constexpr double kStructure = 0.1;
constexpr std::size_t kMatricesMax = 32;  // The largest.

// The same values with each column in an order of its own: what the columns say together is gone.
Dense shuffled(const Dense& rows) {
  Dense result = rows;
  std::mt19937_64 random(1);  // Always the same numbers.
  for (std::size_t j = 0; j < rows.columns; ++j)
    for (std::size_t i = rows.rows; i-- > 1;)
      std::swap(result.row(i)[j], result.row(random() % (i + 1))[j]);
  return result;
}

struct Regrouping {
  const Row* pair = nullptr;
  bool told = false;
  std::size_t clusters = 0;
  double structure = 0, agreement = 0;
};

// The number of clusters that leave least variance against rows without structure (the gap
// statistic of Tibshirani et al., with one reference).
Clusters best_clusters(const Dense& rows, double& structure) {
  const Dense reference = shuffled(rows);
  Clusters best;
  structure = 0;
  for (std::size_t count = 2; count <= kClustersMax; ++count) {
    Clusters found = cluster_rows(rows, count);
    const double chance = cluster_rows(reference, count).explained;
    const double gain = chance < 1 ? 1 - (1 - found.explained) / (1 - chance) : 0;
    if (count > 2 && gain <= structure) continue;
    structure = gain;
    best = std::move(found);
  }
  return best;
}

void measure(Regrouping& it) {
  const Result<Dense> a = read_patch(it.pair->views.a, kPatch);
  const Result<Dense> b = read_patch(it.pair->views.b, kPatch);
  if (!a.ok() || !b.ok() || a.value().rows < kRowsMin) return;
  const Clusters before = best_clusters(a.value(), it.structure);
  if (it.structure >= kStructure)
    it.agreement = adjusted_rand(before.labels, cluster_rows(b.value(), before.count).labels);
  it.clusters = before.count;
  it.told = true;
}

void examine(const Study& study, Answer& answer) {
  std::vector<Regrouping> found;
  for (const Row* pair : study.weights())
    if (pair->views.a.shape.size() >= 2 && pair->views.a.shape[0] >= kRowsMin) {
      found.emplace_back();
      found.back().pair = pair;
    }
  std::ranges::stable_sort(found, std::greater(),
                           [](const Regrouping& each) { return each.pair->views.a.elements(); });
  if (found.size() > kMatricesMax) {
    found.resize(kMatricesMax);
    answer.notes.push_back(fmt::format("the {} largest matrices were looked at", kMatricesMax));
  }
  for_each_index(found.size(), [&](std::size_t i) { measure(found[i]); });
  std::erase_if(found, [](const Regrouping& each) { return !each.told; });
  double sum = 0, structured = 0;
  for (const Regrouping& each : found) {
    if (each.structure < kStructure) continue;
    sum += each.agreement;
    structured += 1;
  }
  if (structured > 0)
    answer.field("agreement", sum / structured);
  else
    answer.unknown("agreement", "a matrix of 24 rows or more whose rows form clusters");
  answer.field("with_clusters", structured).field("looked_at", found.size());
  std::ranges::stable_sort(found, {}, &Regrouping::agreement);
  Listing& list = answer.list("matrices", {"tensor", "clusters", "structure", "agreement"});
  for (const Regrouping& each : found) {
    const bool has = each.structure >= kStructure;
    list.add({each.pair->a.name, has ? each.clusters : 0, each.structure,
              has ? Datum(each.agreement) : Datum()});
  }
  answer.notes.push_back("from at most 192 rows by 64 columns of each matrix");
}

}  // namespace

constinit const Analysis analyses::clustering_change = {
    .name = "clustering_change",
    .flag = "--clustering-change",
    .question = "Do the rows of the weights still form the same clusters?",
    .definition = "clusters of rows before and after, and their adjusted Rand index",
    .examine = examine,
};

}  // namespace tensordiff
