// Groups of rows that lie together, and how well two groupings agree.

#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "analyze/linear_algebra.h"

namespace tensordiff {

struct Clusters {
  std::vector<std::size_t> labels;  // Of each row, below `count`.
  std::size_t count = 0;
  double explained = 0;  // Share of the variance of the rows that lies between clusters.
};

// k-means with farthest-first starts: no randomness, the same rows give the same labels. What all
// numbers of clusters have in common is computed once.
class Cloud {
 public:
  explicit Cloud(const Dense& rows);
  Clusters clusters(std::size_t count);

 private:
  void start_with(std::size_t count);
  void label(std::size_t count, std::vector<std::size_t>& labels);
  double move_centres(const std::vector<std::size_t>& labels, std::size_t count);

  Dense rows_;  // Without their mean, so that products tell distances without loss.
  double squares_ = 0;
  std::vector<std::size_t> starts_;  // Rows, each the farthest from all before it,
  std::vector<double> nearest_;      // and how far each row is from these.
  Dense centres_, across_;           // The same turned, for products with rows.
  std::vector<double> products_;
};
Clusters cluster_rows(const Dense& rows, std::size_t count);

// Agreement of two groupings of the same rows, corrected for chance: 1 the same, about 0 unrelated.
double adjusted_rand(std::span<const std::size_t> x, std::span<const std::size_t> y);

}  // namespace tensordiff
