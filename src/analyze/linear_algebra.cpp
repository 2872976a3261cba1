#include "analyze/linear_algebra.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <functional>
#include <numeric>

#include "compare/kernels/dense.h"

namespace tensordiff {
namespace {

struct Tridiagonal {
  std::vector<double> diagonal, beside;  // beside[i] stands between i and i + 1.
};

// Reflections that leave the eigenvalues as they are and bring all else to zero, column by column.
Tridiagonal tridiagonal(Dense& matrix) {
  const std::size_t n = matrix.rows;
  Tridiagonal result{std::vector<double>(n), std::vector<double>(n, 0.0)};
  std::vector<double> v(n), w(n);
  for (std::size_t k = 0; k + 2 < n; ++k) {
    // The matrix is symmetric: the row lies together, the column does not.
    const auto across = std::span<const double>(matrix.row(k)).subspan(k + 1);
    const double squares = dot(across, across);
    const double head = across[0];
    const double alpha = head > 0 ? -std::sqrt(squares) : std::sqrt(squares);
    result.beside[k] = alpha;
    const double scale = squares - head * alpha;  // Half of ‖v‖².
    if (scale <= 0) continue;
    std::ranges::copy(across, v.begin() + static_cast<std::ptrdiff_t>(k + 1));
    v[k + 1] -= alpha;
    double projection = 0;
    for (std::size_t i = k + 1; i < n; ++i) {
      const auto row = std::span<const double>(matrix.row(i)).subspan(k + 1);
      w[i] = dot(row, std::span<const double>(v).subspan(k + 1)) / scale;
      projection += w[i] * v[i];
    }
    for (std::size_t i = k + 1; i < n; ++i) w[i] -= projection / (2 * scale) * v[i];
    for (std::size_t i = k + 1; i < n; ++i)
      kernels::subtract({v.data() + k + 1, w.data() + k + 1, w[i], v[i]}, n - k - 1,
                        matrix.row(i).data() + k + 1);
  }
  for (std::size_t i = 0; i < n; ++i) result.diagonal[i] = matrix.row(i)[i];
  if (n >= 2) result.beside[n - 2] = matrix.row(n - 1)[n - 2];
  return result;
}

// One implicit step of QL on the block [first, last], with the shift that Wilkinson proposed.
void ql_step(Tridiagonal& t, std::size_t first, std::size_t last) {
  std::vector<double>& d = t.diagonal;
  std::vector<double>& e = t.beside;
  const double half = (d[first + 1] - d[first]) / (2 * e[first]);
  const double root = std::hypot(half, 1.0);
  double g = d[last] - d[first] + e[first] / (half + std::copysign(root, half));
  double sine = 1, cos = 1, shift = 0;
  for (std::size_t i = last; i-- > first;) {
    const double f = sine * e[i];
    const double b = cos * e[i];
    const double length = std::sqrt(f * f + g * g);  // spectrum_of() has scaled what is large.
    e[i + 1] = length;
    if (length == 0) {
      d[i + 1] -= shift;
      e[last] = 0;
      return;
    }
    sine = f / length;
    cos = g / length;
    g = d[i + 1] - shift;
    const double step = (d[i] - g) * sine + 2 * cos * b;
    shift = sine * step;
    d[i + 1] = g + shift;
    g = cos * step - b;
  }
  d[first] -= shift;
  e[first] = g;
  e[last] = 0;
}

}  // namespace

Dense difference(const Dense& b, const Dense& a) {
  assert(a.values.size() == b.values.size());
  Dense result = b;
  for (std::size_t i = 0; i < result.values.size(); ++i) result.values[i] -= a.values[i];
  return result;
}

double dot(std::span<const double> left, std::span<const double> right) {
  assert(left.size() == right.size());
  return kernels::dot(left.data(), right.data(), left.size());
}

double cosine(std::span<const double> x, std::span<const double> y) {
  const double squares = std::sqrt(dot(x, x)) * std::sqrt(dot(y, y));
  return squares > 0 ? std::clamp(dot(x, y) / squares, -1.0, 1.0) : 0;
}

Dense row_gram(const Dense& matrix) {
  const std::size_t n = matrix.rows;
  Dense result{n, n, std::vector<double>(n * n)};
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j <= i; ++j)
      result.row(i)[j] = result.row(j)[i] = dot(matrix.row(i), matrix.row(j));
  return result;
}

Dense gram(const Dense& matrix) {
  if (matrix.rows <= matrix.columns) return row_gram(matrix);
  Dense turned{matrix.columns, matrix.rows, std::vector<double>(matrix.values.size())};
  for (std::size_t i = 0; i < matrix.rows; ++i)
    for (std::size_t j = 0; j < matrix.columns; ++j) turned.row(j)[i] = matrix.row(i)[j];
  return row_gram(turned);
}

std::vector<double> eigenvalues(Dense symmetric) {
  Tridiagonal t = tridiagonal(symmetric);
  const std::size_t n = t.diagonal.size();
  constexpr int kStepsMax = 60;  // Two or three are usual for each.
  for (std::size_t first = 0; first < n; ++first) {
    for (int step = 0; step < kStepsMax; ++step) {
      std::size_t last = first;
      for (; last + 1 < n; ++last) {
        const double near = std::abs(t.diagonal[last]) + std::abs(t.diagonal[last + 1]);
        if (std::abs(t.beside[last]) <= 1e-16 * near) break;
      }
      if (last == first) break;
      ql_step(t, first, last);
    }
  }
  std::ranges::sort(t.diagonal, std::greater());
  return std::move(t.diagonal);
}

double Spectrum::total() const { return std::accumulate(energies.begin(), energies.end(), 0.0); }

double Spectrum::stable_rank() const {
  return energies.empty() || energies[0] <= 0 ? 0 : total() / energies[0];
}

double Spectrum::effective_rank() const {
  const double all = total();
  if (all <= 0) return 0;
  double entropy = 0;
  for (const double energy : energies)
    if (energy > 0) entropy -= energy / all * std::log(energy / all);
  return std::exp(entropy);
}

std::size_t Spectrum::rank_holding(double share) const {
  const double wanted = share * total();
  if (wanted <= 0) return 0;
  double held = 0;
  for (std::size_t i = 0; i < energies.size(); ++i)
    if ((held += energies[i]) >= wanted) return i + 1;
  return energies.size();
}

double Spectrum::held_by(std::size_t count) const {
  const double all = total();
  if (all <= 0) return 0;
  const auto end = energies.begin() + static_cast<std::ptrdiff_t>(std::min(count, energies.size()));
  return std::accumulate(energies.begin(), end, 0.0) / all;
}

Spectrum spectrum_of(const Dense& matrix) {
  Dense copy = matrix;
  // Squares of very large or small values leave the range of a double.
  double largest = 0;
  for (double& value : copy.values) {
    if (!std::isfinite(value)) value = 0;
    largest = std::max(largest, std::abs(value));
  }
  if (largest == 0) return {};
  for (double& value : copy.values) value /= largest;
  Spectrum spectrum{eigenvalues(gram(copy))};
  for (double& energy : spectrum.energies) energy = std::max(0.0, energy) * largest * largest;
  return spectrum;
}

double linear_cka(const Dense& gram_x, const Dense& gram_y) {
  assert(gram_x.rows == gram_y.rows);
  const auto centred = [](Dense gram) {
    constexpr double kRounding = 1e-14;  // What is left of a constant, relative to it.
    const std::size_t n = gram.rows;
    const double all = dot(gram.values, gram.values);
    std::vector<double> means(n);
    double mean = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const auto row = gram.row(i);
      means[i] = std::accumulate(row.begin(), row.end(), 0.0) / static_cast<double>(n);
      mean += means[i] / static_cast<double>(n);
    }
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) gram.row(i)[j] += mean - means[i] - means[j];
    if (dot(gram.values, gram.values) <= kRounding * kRounding * all)
      std::ranges::fill(gram.values, 0.0);
    return gram;
  };
  return std::max(0.0, cosine(centred(gram_x).values, centred(gram_y).values));
}

}  // namespace tensordiff
