#include "diagnose/blocks.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace tensordiff {
namespace {

constexpr uint64_t kBlocksMax = 256;
constexpr uint64_t kRowsLookedAt = 16;  // Enough to tell blocks of real values apart.

// ‖x − y‖², where both are numbers.
double squared_gap(const double* x, const double* y, uint64_t size) {
  double sum = 0;
  for (uint64_t i = 0; i < size; ++i) {
    const double apart = x[i] - y[i];
    if (std::isfinite(apart)) sum += apart * apart;
  }
  return sum;
}

// A block of a against one of b; gives up where it is more than `most`.
double gap(const Matrix& a, uint64_t from, const Matrix& b, uint64_t to, uint64_t size,
           double most) {
  const uint64_t rows = std::min(a.rows(), kRowsLookedAt);
  double sum = 0;
  for (uint64_t k = 0; k < rows && sum <= most; ++k) {
    const uint64_t row = k * a.rows() / rows;
    sum += squared_gap(a.row(row).data() + from * size, b.row(row).data() + to * size, size);
  }
  return sum;
}

// Its own place first, so that equal blocks stay where they are.
uint64_t nearest_block(const Matrix& a, const Matrix& b, uint64_t to, uint64_t count) {
  const uint64_t size = a.features / count;
  uint64_t nearest = to;
  double least = gap(a, to, b, to, size, INFINITY);
  for (uint64_t from = 0; from < count && least > 0; ++from) {
    const double here = gap(a, from, b, to, size, least);
    if (here < least) least = here, nearest = from;
  }
  return nearest;
}

}  // namespace

std::optional<BlockMap> block_order(const Matrix& a, const Matrix& b, uint64_t count) {
  BlockMap map;
  std::set<uint64_t> used;
  for (uint64_t to = 0; to < count; ++to) {
    const uint64_t nearest = nearest_block(a, b, to, count);
    if (!used.insert(nearest).second) return std::nullopt;
    map.source.push_back(nearest);
    map.moved = map.moved || nearest != to;
  }
  return map.moved ? std::optional(map) : std::nullopt;
}

std::optional<BlockMap> one_block(const Matrix& a, const Matrix& b, uint64_t count) {
  const uint64_t shard = nearest_block(a, b, 0, count);
  for (uint64_t to = 1; to < count; ++to)
    if (nearest_block(a, b, to, count) != shard) return std::nullopt;
  return BlockMap{std::vector<uint64_t>(count, shard), true};
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
