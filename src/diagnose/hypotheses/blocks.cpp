#include "diagnose/hypotheses/blocks.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "compare/kernels/dense.h"

namespace tensordiff {
namespace {

constexpr uint64_t kBlocksMax = 256;
constexpr uint64_t kRowsLookedAt = 16;  // Enough to tell blocks of real values apart.
// A block that is so much farther off in as many values is not the one.
constexpr uint64_t kValuesThatTell = 64;
constexpr double kClearlyMore = 1.5;
constexpr double kClearlyLess = 0.5;  // Where the right one is off by less than all of its size.

// ‖x − y‖², where both are numbers.
double squared_gap(const double* x, const double* y, uint64_t size) {
  double sum = kernels::squares_apart(x, y, size);
  if (std::isfinite(sum)) return sum;
  sum = 0;
  for (uint64_t i = 0; i < size; ++i) {
    const double apart = x[i] - y[i];
    if (std::isfinite(apart)) sum += apart * apart;
  }
  return sum;
}

// How far a block of a is from one of b, up to each row that is looked at.
using Gaps = std::vector<double>;

// Gives up where it is clearly more than `least`, which is that of the nearest so far: then it has
// fewer rows.
void measure(const Matrix& a, uint64_t from, const Matrix& b, uint64_t to, uint64_t size,
             const Gaps& least, Gaps& gaps) {
  const uint64_t rows = std::min(a.rows(), kRowsLookedAt);
  gaps.clear();
  double sum = 0;
  for (uint64_t k = 0; k < rows; ++k) {
    const uint64_t row = k * a.rows() / rows;
    sum += squared_gap(a.row(row).data() + from * size, b.row(row).data() + to * size, size);
    const bool tells = (k + 1) * size >= kValuesThatTell;
    if (!least.empty() && (sum > least.back() || (tells && sum > kClearlyMore * least[k]))) return;
    gaps.push_back(sum);
  }
}

// Its own place first: equal blocks stay where they are, and so do those of which no other one is
// clearly nearer.
uint64_t nearest_block(const Matrix& a, const Matrix& b, uint64_t to, uint64_t count) {
  const uint64_t size = a.features / count;
  uint64_t nearest = to;
  Gaps least, gaps;
  measure(a, to, b, to, size, {}, least);
  for (double& gap : least) gap *= kClearlyLess;
  for (uint64_t from = 0; from < count && !least.empty() && least.back() > 0; ++from) {
    measure(a, from, b, to, size, least, gaps);
    if (gaps.size() == least.size() && gaps.back() < least.back())
      std::swap(gaps, least), nearest = from;
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
