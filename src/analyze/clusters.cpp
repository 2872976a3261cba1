#include "analyze/clusters.h"

#include <algorithm>
#include <limits>
#include <map>

#include "compare/kernels/dense.h"

namespace tensordiff {
namespace {

constexpr int kRoundsMax = 30;

double apart(std::span<const double> x, std::span<const double> y) {
  return kernels::squares_apart(x.data(), y.data(), x.size());
}

void add(std::span<const double> row, std::span<double> to) {
  const double* from = row.data();
  double* sum = to.data();
  for (std::size_t j = 0; j < row.size(); ++j) sum[j] += from[j];
}

std::vector<double> mean_row(const Dense& rows) {
  std::vector<double> mean(rows.columns);
  for (std::size_t i = 0; i < rows.rows; ++i) add(rows.row(i), mean);
  for (double& value : mean) value /= static_cast<double>(rows.rows);
  return mean;
}

// The row farthest from the mean, then, again and again, the one farthest from all chosen.
Dense first_centres(const Dense& rows, std::span<const double> mean, std::size_t count) {
  Dense centres{count, rows.columns, {}};
  std::vector<double> nearest(rows.rows, std::numeric_limits<double>::infinity());
  std::vector<double> from(mean.begin(), mean.end());
  for (std::size_t c = 0; c < count; ++c) {
    std::size_t farthest = 0;
    for (std::size_t i = 0; i < rows.rows; ++i) {
      const double distance = apart(rows.row(i), from);
      nearest[i] = c == 1 ? distance : std::min(nearest[i], distance);
      if (nearest[i] > nearest[farthest]) farthest = i;
    }
    const auto row = rows.row(farthest);
    from.assign(row.begin(), row.end());
    centres.values.insert(centres.values.end(), row.begin(), row.end());
  }
  return centres;
}

std::size_t nearest_centre(const Dense& centres, std::span<const double> row) {
  std::size_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t c = 0; c < centres.rows; ++c) {
    const double distance = apart(centres.row(c), row);
    if (distance < least) least = distance, best = c;
  }
  return best;
}

// A centre without rows stays where it is.
void move_centres(const Dense& rows, std::span<const std::size_t> labels, Dense& centres) {
  std::vector<double> counts(centres.rows);
  Dense sums{centres.rows, centres.columns, std::vector<double>(centres.values.size())};
  for (std::size_t i = 0; i < rows.rows; ++i) {
    counts[labels[i]] += 1;
    add(rows.row(i), sums.row(labels[i]));
  }
  for (std::size_t c = 0; c < centres.rows; ++c)
    for (std::size_t j = 0; j < centres.columns && counts[c] > 0; ++j)
      centres.row(c)[j] = sums.row(c)[j] / counts[c];
}

double pairs_of(double count) { return count * (count - 1) / 2; }

}  // namespace

Clusters cluster_rows(const Dense& rows, std::size_t count) {
  Clusters result;
  result.count = std::min(count, rows.rows);
  if (result.count == 0) return result;
  const std::vector<double> mean = mean_row(rows);
  Dense centres = first_centres(rows, mean, result.count);
  result.labels.assign(rows.rows, 0);
  for (int round = 0; round < kRoundsMax; ++round) {
    bool moved = round == 0;
    for (std::size_t i = 0; i < rows.rows; ++i) {
      const std::size_t label = nearest_centre(centres, rows.row(i));
      moved |= label != result.labels[i];
      result.labels[i] = label;
    }
    if (!moved) break;
    move_centres(rows, result.labels, centres);
  }
  double within = 0, all = 0;
  for (std::size_t i = 0; i < rows.rows; ++i) {
    within += apart(rows.row(i), centres.row(result.labels[i]));
    all += apart(rows.row(i), mean);
  }
  result.explained = all > 0 ? std::max(0.0, 1 - within / all) : 0;
  return result;
}

double adjusted_rand(std::span<const std::size_t> x, std::span<const std::size_t> y) {
  std::map<std::pair<std::size_t, std::size_t>, double> both;
  std::map<std::size_t, double> in_x, in_y;
  for (std::size_t i = 0; i < x.size(); ++i) {
    both[{x[i], y[i]}] += 1;
    in_x[x[i]] += 1;
    in_y[y[i]] += 1;
  }
  double together = 0, pairs_x = 0, pairs_y = 0;
  for (const auto& [labels, count] : both) together += pairs_of(count);
  for (const auto& [label, count] : in_x) pairs_x += pairs_of(count);
  for (const auto& [label, count] : in_y) pairs_y += pairs_of(count);
  const double all = pairs_of(static_cast<double>(x.size()));
  const double expected = all > 0 ? pairs_x * pairs_y / all : 0;
  const double most = (pairs_x + pairs_y) / 2;
  // One cluster each, or a cluster for each row: the two agree without a choice.
  return most == expected ? 1 : (together - expected) / (most - expected);
}

}  // namespace tensordiff
