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

// k-means with farthest-first starts: no randomness, the same rows give the same labels.
Clusters cluster_rows(const Dense& rows, std::size_t count);

// Agreement of two groupings of the same rows, corrected for chance: 1 the same, about 0 unrelated.
double adjusted_rand(std::span<const std::size_t> x, std::span<const std::size_t> y);

}  // namespace tensordiff
