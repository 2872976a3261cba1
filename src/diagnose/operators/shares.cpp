#include "diagnose/operators/shares.h"

#include <cmath>

namespace tensordiff::operators {
namespace {

// A pivot below this share of the largest is one that rounding made: 52 bits, less those that a
// thousand sums lose.
constexpr double kPivotMin = 1e-12;

// The products of all columns of a block with each other.
std::vector<double> gram(const Block& block) {
  const uint64_t n = block.features;
  std::vector<double> made(n * n);
  for (uint64_t r = 0; r < block.rows(); ++r)
    for (uint64_t i = 0; i < n; ++i)
      for (uint64_t j = 0; j <= i; ++j) made[i * n + j] += block.row(r)[i] * block.row(r)[j];
  return made;
}

// Cholesky, in place in the lower half.
bool factorise(std::vector<double>& m, uint64_t n) {
  double most = 0;
  for (uint64_t i = 0; i < n; ++i) most = std::max(most, m[i * n + i]);
  for (uint64_t i = 0; i < n; ++i)
    for (uint64_t j = 0; j <= i; ++j) {
      double sum = m[i * n + j];
      for (uint64_t k = 0; k < j; ++k) sum -= m[i * n + k] * m[j * n + k];
      if (i == j && !(sum > kPivotMin * most)) return false;
      m[i * n + j] = i == j ? std::sqrt(sum) : sum / m[j * n + j];
    }
  return true;
}

}  // namespace

std::optional<std::vector<double>> solve_shares(const Block& x, const Block& w, const Block& y,
                                                const Block& p) {
  const uint64_t n = x.features;
  std::vector<double> m = gram(x);
  const std::vector<double> other = gram(w);
  for (std::size_t i = 0; i < m.size(); ++i) m[i] *= other[i];
  std::vector<double> s(n);
  for (uint64_t r = 0; r < y.rows(); ++r)
    for (uint64_t c = 0; c < y.features; ++c) {
      const double gap = y.row(r)[c] - p.row(r)[c];
      for (uint64_t j = 0; j < n; ++j) s[j] += gap * x.row(r)[j] * w.row(c)[j];
    }
  if (!factorise(m, n)) return std::nullopt;
  for (uint64_t i = 0; i < n; ++i) {
    for (uint64_t k = 0; k < i; ++k) s[i] -= m[i * n + k] * s[k];
    s[i] /= m[i * n + i];
  }
  for (uint64_t i = n; i-- > 0;) {
    for (uint64_t k = i + 1; k < n; ++k) s[i] -= m[k * n + i] * s[k];
    s[i] /= m[i * n + i];
  }
  return s;
}

}  // namespace tensordiff::operators
