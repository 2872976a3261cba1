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
//
// More clusters leave no more than fewer, of the rows as of the reference. So between two numbers
// that were tried, none gains more than what the larger leaves of what chance leaves of the
// smaller: stretches that cannot beat the best, or make a matrix one with clusters, are not tried.
class BestClusters {
 public:
  explicit BestClusters(const Dense& rows) : rows_(rows), reference_(shuffled(rows)) {
    const Left few = look_at(2), many = look_at(kClustersMax);
    look_between(2, few, kClustersMax, many);
  }

  double structure() const { return structure_; }
  const Clusters& best() const { return best_; }

 private:
  struct Left {
    double rows, chance;  // Shares of the variance.
  };
  static double gain(double left, double chance) { return chance > 0 ? 1 - left / chance : 0; }

  Left look_at(std::size_t count) {
    Clusters found = rows_.clusters(count);
    const Left left{1 - found.explained, 1 - reference_.clusters(count).explained};
    const double gained = gain(left.rows, left.chance);
    const bool fewer = gained == structure_ && count < best_.count;
    if (best_.count == 0 || gained > structure_ || fewer) {
      structure_ = gained;
      best_ = std::move(found);
    }
    return left;
  }

  void look_between(std::size_t few, const Left& of_few, std::size_t many, const Left& of_many) {
    if (many - few < 2) return;
    if (gain(of_many.rows, of_few.chance) <= std::max(structure_, kStructure)) return;
    const std::size_t middle = (few + many) / 2;
    const Left of_middle = look_at(middle);
    look_between(few, of_few, middle, of_middle);
    look_between(middle, of_middle, many, of_many);
  }

  Cloud rows_, reference_;
  Clusters best_;
  double structure_ = 0;
};

void measure(Regrouping& it) {
  const Result<Dense> a = read_patch(it.pair->views.a, kPatch);
  const Result<Dense> b = read_patch(it.pair->views.b, kPatch);
  if (!a.ok() || !b.ok() || a.value().rows < kRowsMin) return;
  const BestClusters found(a.value());
  const Clusters& before = found.best();
  it.structure = found.structure();
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
