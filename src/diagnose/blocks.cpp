#include "diagnose/blocks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace tensordiff {
namespace {

constexpr uint64_t kBlocksMax = 256;
constexpr uint64_t kRowsLookedAt = 16;  // Enough to tell blocks of real values apart.

double gap(const Matrix& a, uint64_t from, const Matrix& b, uint64_t to, uint64_t size) {
  const uint64_t rows = std::min(a.rows(), kRowsLookedAt);
  double sum = 0;
  for (uint64_t k = 0; k < rows; ++k) {
    const uint64_t row = k * a.rows() / rows;
    for (uint64_t i = 0; i < size; ++i) {
      const double apart = a.row(row)[from * size + i] - b.row(row)[to * size + i];
      if (std::isfinite(apart)) sum += apart * apart;
    }
  }
  return sum;
}

}  // namespace

BlockMap map_blocks(const Matrix& a, const Matrix& b, uint64_t count) {
  const uint64_t size = a.features / count;
  BlockMap map;
  std::set<uint64_t> used;
  for (uint64_t to = 0; to < count; ++to) {
    // Its own place first, so that equal blocks stay where they are.
    uint64_t nearest = to;
    double least = gap(a, to, b, to, size);
    for (uint64_t from = 0; from < count && least > 0; ++from) {
      const double here = gap(a, from, b, to, size);
      if (here < least) least = here, nearest = from;
    }
    map.source.push_back(nearest);
    used.insert(nearest);
    map.identity = map.identity && nearest == to;
  }
  map.permutation = used.size() == count;
  return map;
}

Matrix rearranged(const Matrix& a, const BlockMap& map) {
  Matrix result = a;
  const uint64_t size = a.features / map.source.size();
  for (uint64_t row = 0; row < a.rows(); ++row)
    for (uint64_t to = 0; to < map.source.size(); ++to)
      std::ranges::copy(a.row(row).subspan(map.source[to] * size, size),
                        result.row(row).begin() + static_cast<std::ptrdiff_t>(to * size));
  return result;
}

Matrix transposed(const Matrix& matrix) {
  Matrix result = matrix;
  result.batch = 1;
  result.tokens = matrix.features;
  result.features = matrix.rows();
  result.heads = 0;
  for (uint64_t row = 0; row < matrix.rows(); ++row)
    for (uint64_t i = 0; i < matrix.features; ++i)
      result.values[i * result.features + row] = matrix.values[row * matrix.features + i];
  return result;
}

std::vector<uint64_t> block_counts(const Matrix& matrix) {
  std::vector<uint64_t> counts;
  for (uint64_t count = 2; count <= std::min(kBlocksMax, matrix.features / 2); ++count)
    if (matrix.features % count == 0) counts.push_back(count);
  return counts;
}

}  // namespace tensordiff
