#include "analyze/clusters.h"

#include <algorithm>
#include <limits>
#include <map>

#include "compare/kernels/dense.h"

namespace tensordiff {
namespace {

constexpr int kRoundsMax = 30;
constexpr std::size_t kPanel = 16;  // Centres that are multiplied at once.

double apart(std::span<const double> x, std::span<const double> y) {
  return kernels::squares_apart(x.data(), y.data(), x.size());
}

double pairs_of(double count) { return count * (count - 1) / 2; }

}  // namespace

Cloud::Cloud(const Dense& rows) : rows_(rows) {
  std::vector<double> mean(rows.columns);
  for (std::size_t i = 0; i < rows.rows; ++i)
    kernels::add_times(1.0 / static_cast<double>(rows.rows), rows.row(i).data(), rows.columns,
                       mean.data());
  for (std::size_t i = 0; i < rows.rows; ++i)
    kernels::add_times(-1, mean.data(), rows.columns, rows_.row(i).data());
  squares_ = dot(rows_.values, rows_.values);
}

// The row farthest from the mean, then, again and again, the one farthest from all chosen.
void Cloud::start_with(std::size_t count) {
  while (starts_.size() < count) {
    const std::vector<double> mean(rows_.columns);
    const auto from = starts_.empty() ? std::span(mean) : rows_.row(starts_.back());
    const bool anew = starts_.size() < 2;  // The mean is none of the chosen.
    nearest_.resize(rows_.rows);
    std::size_t farthest = 0;
    for (std::size_t i = 0; i < rows_.rows; ++i) {
      const double distance = apart(rows_.row(i), from);
      nearest_[i] = anew ? distance : std::min(nearest_[i], distance);
      if (nearest_[i] > nearest_[farthest]) farthest = i;
    }
    starts_.push_back(farthest);
  }
}

// The nearest centre of each row, by ‖c‖² − 2 <x, c>.
void Cloud::label(std::size_t count, std::vector<std::size_t>& labels) {
  std::vector<double> lengths(count);
  for (std::size_t c = 0; c < count; ++c) {
    const auto centre = centres_.row(c);
    lengths[c] = dot(centre, centre);
    for (std::size_t j = 0; j < rows_.columns; ++j)
      across_.values[j * across_.columns + c] = centre[j];
  }
  kernels::multiply({rows_.values.data(), rows_.columns, across_.values.data(), across_.columns,
                     rows_.rows, rows_.columns, across_.columns},
                    products_.data(), across_.columns);
  for (std::size_t i = 0; i < rows_.rows; ++i) {
    const double* of_row = products_.data() + i * across_.columns;
    std::size_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t c = 0; c < count; ++c) {
      const double distance = lengths[c] - 2 * of_row[c];
      if (distance < least) least = distance, best = c;
    }
    labels[i] = best;
  }
}

// To the means of their rows; one without rows stays where it is. Gives Σ‖c‖² over the rows: what
// lies between clusters.
double Cloud::move_centres(const std::vector<std::size_t>& labels, std::size_t count) {
  std::vector<double> counts(count);
  for (const std::size_t label : labels) counts[label] += 1;
  for (std::size_t c = 0; c < count; ++c)
    if (counts[c] > 0) std::ranges::fill(centres_.row(c), 0.0);
  for (std::size_t i = 0; i < rows_.rows; ++i)
    kernels::add_times(1 / counts[labels[i]], rows_.row(i).data(), rows_.columns,
                       centres_.row(labels[i]).data());
  double between = 0;
  for (std::size_t c = 0; c < count; ++c)
    between += counts[c] * dot(centres_.row(c), centres_.row(c));
  return between;
}

Clusters Cloud::clusters(std::size_t count) {
  Clusters result;
  result.count = std::min(count, rows_.rows);
  if (result.count == 0) return result;
  start_with(result.count);
  centres_ = {result.count, rows_.columns, {}};
  for (std::size_t c = 0; c < result.count; ++c) {
    const auto row = rows_.row(starts_[c]);
    centres_.values.insert(centres_.values.end(), row.begin(), row.end());
  }
  const std::size_t width = (result.count + kPanel - 1) / kPanel * kPanel;
  across_ = {rows_.columns, width, std::vector<double>(rows_.columns * width)};
  products_.resize(rows_.rows * width);
  result.labels.assign(rows_.rows, 0);
  double between = 0;
  for (int round = 0; round < kRoundsMax; ++round) {
    std::vector<std::size_t> labels(rows_.rows);
    label(result.count, labels);
    if (round > 0 && labels == result.labels) break;
    result.labels = std::move(labels);
    between = move_centres(result.labels, result.count);
  }
  result.explained = squares_ > 0 ? std::min(1.0, between / squares_) : 0;
  return result;
}

Clusters cluster_rows(const Dense& rows, std::size_t count) { return Cloud(rows).clusters(count); }

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
