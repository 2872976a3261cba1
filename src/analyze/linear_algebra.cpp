#include "analyze/linear_algebra.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>

#include "compare/kernels/dense.h"

namespace tensordiff {
namespace {

struct Tridiagonal {
  std::vector<double> diagonal, beside;  // beside[i] stands between i and i + 1.
};

// A copy of a square matrix whose rows start at cache lines and are filled up with zeros: vectors
// that lie across two lines take twice as long.
class Lined {
 public:
  explicit Lined(const Dense& matrix)
      : step_((matrix.rows + kLine - 1) / kLine * kLine),
        room_((step_ + kPlaces) * step_ + kLine),
        first_(aligned(room_.data())) {
    for (std::size_t i = 0; i < matrix.rows; ++i) std::ranges::copy(matrix.row(i), row(i));
  }

  static constexpr std::size_t kLine = 8;  // Values.
  std::size_t step() const { return step_; }
  double* row(std::size_t index) const { return first_ + index * step_; }
  // Vectors beside it, of as many values as a row.
  double* vector(std::size_t which) const { return row(step_ + which); }

 private:
  static constexpr std::size_t kPlaces = 4;
  static double* aligned(double* at) {
    while (reinterpret_cast<uintptr_t>(at) % (kLine * sizeof(double)) != 0) ++at;
    return at;
  }

  std::size_t step_;
  std::vector<double> room_;
  double* first_;
};

// Reflections that leave the eigenvalues as they are and bring all else to zero, column by column.
// What one reflection takes off the rest of the matrix is taken off while the product with the next
// is computed, so that each reflection walks over the matrix once.
Tridiagonal tridiagonal(const Dense& symmetric) {
  const std::size_t n = symmetric.rows;
  Tridiagonal result{std::vector<double>(n), std::vector<double>(n, 0.0)};
  const Lined matrix(symmetric);
  double *v = matrix.vector(0), *w = matrix.vector(1);
  double *next = matrix.vector(2), *product = matrix.vector(3);
  for (std::size_t k = 0; k < n; ++k) {
    // The matrix is symmetric: the row lies together, the column does not.
    double* row = matrix.row(k);
    const double of_w = v[k], of_v = w[k];
    for (std::size_t j = k; j < n; ++j) row[j] -= of_w * w[j] + of_v * v[j];
    result.diagonal[k] = row[k];
    if (k + 1 < n) result.beside[k] = row[k + 1];
    if (k + 2 >= n) continue;
    const double head = row[k + 1], squares = kernels::dot(row + k + 1, row + k + 1, n - k - 1);
    const double alpha = head > 0 ? -std::sqrt(squares) : std::sqrt(squares);
    const double scale = squares - head * alpha;  // Half of ‖next‖².
    const bool turns = scale > 0;
    for (std::size_t j = k + 1; j < n; ++j) next[j] = turns ? row[j] : 0;
    next[k] = 0;
    if (turns) {
      result.beside[k] = alpha;
      next[k + 1] -= alpha;
    }
    // From a cache line on: v, w and next are 0 before k + 1.
    const std::size_t start = (k + 1) / Lined::kLine * Lined::kLine;
    kernels::turn({v + start, w + start, next + start},
                  {matrix.row(start) + start, matrix.step() - start, matrix.step(), k + 1 - start},
                  product + start);
    const double projection = turns ? kernels::dot(next, product, n) / (2 * scale) : 0;
    v[k] = w[k] = 0;
    for (std::size_t i = k + 1; i < n; ++i) {
      v[i] = next[i];
      w[i] = turns ? (product[i] - projection * next[i]) / scale : 0;
    }
  }
  return result;
}

// One step of QL on the block [first, last] in its form without roots (Pal, Walker and Kahan), with
// the shift that Wilkinson proposed. `squares` are those of what stands beside the diagonal.
void ql_step(std::vector<double>& diagonal, std::vector<double>& squares, std::size_t first,
             std::size_t last) {
  double* d = diagonal.data();
  double* e = squares.data();
  const double beside = std::sqrt(e[first]);
  const double half = (d[first + 1] - d[first]) / (2 * beside);
  const double shift = d[first] - beside / (half + std::copysign(std::hypot(half, 1.0), half));
  double cos = 1, sine = 0;  // Their squares.
  double gamma = d[last] - shift, p = gamma * gamma;
  for (std::size_t i = last; i-- > first;) {
    const double square = e[i], length = p + square;
    e[i + 1] = sine * length;  // That of the last is set below.
    // Both divisions run at once: each step waits for the one before.
    const double inverse = 1 / length, back = length / p;
    const double cos_before = cos, gamma_before = gamma;
    cos = p * inverse;
    sine = square * inverse;
    gamma = cos * (d[i] - shift) - sine * gamma_before;
    d[i + 1] = gamma_before + (d[i] - gamma);
    p = std::isfinite(back) ? gamma * gamma * back : cos_before * square;
  }
  e[first] = sine * p;
  d[first] = shift + gamma;
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

Dense turned(const Dense& matrix) {
  Dense result{matrix.columns, matrix.rows, std::vector<double>(matrix.values.size())};
  for (std::size_t i = 0; i < matrix.rows; ++i)
    for (std::size_t j = 0; j < matrix.columns; ++j)
      result.values[j * matrix.rows + i] = matrix.values[i * matrix.columns + j];
  return result;
}

// Some rows after the other, each with the products of all rows from the first of them on: the
// rest are those of other rows with them.
Dense row_gram(const Dense& matrix) {
  constexpr std::size_t kPanel = 16;
  const std::size_t n = matrix.rows, depth = matrix.columns;
  Dense result{n, n, std::vector<double>(n * n)};
  std::vector<double> panel(depth * kPanel), products(n * kPanel);
  for (std::size_t first = 0; first < n; first += kPanel) {
    const std::size_t width = std::min(kPanel, n - first);
    for (std::size_t i = 0; i < width; ++i) {
      const double* row = matrix.values.data() + (first + i) * depth;
      for (std::size_t k = 0; k < depth; ++k) panel[k * kPanel + i] = row[k];
    }
    kernels::multiply({matrix.values.data() + first * depth, depth, panel.data(), kPanel, n - first,
                       depth, kPanel},
                      products.data(), kPanel);
    for (std::size_t i = first; i < n; ++i)
      for (std::size_t j = first; j < std::min(i + 1, first + width); ++j)
        result.values[i * n + j] = result.values[j * n + i] =
            products[(i - first) * kPanel + (j - first)];
  }
  return result;
}

Dense gram(const Dense& matrix) {
  if (matrix.rows <= matrix.columns) return row_gram(matrix);
  return row_gram(turned(matrix));
}

std::vector<double> eigenvalues(const Dense& symmetric) {
  Tridiagonal t = tridiagonal(symmetric);
  const std::size_t n = t.diagonal.size();
  // Squares of values from 1e-140 to 1e140 do not leave the range of a double.
  double largest = 0;
  for (std::size_t i = 0; i < n; ++i)
    largest = std::max({largest, std::abs(t.diagonal[i]), std::abs(t.beside[i])});
  if (largest == 0) return std::move(t.diagonal);
  const double unit = std::ldexp(1.0, std::ilogb(largest));
  for (double& value : t.diagonal) value /= unit;
  for (double& value : t.beside) value = value / unit * (value / unit);
  constexpr int kStepsMax = 60;  // Two or three are usual for each.
  for (std::size_t first = 0; first < n; ++first) {
    for (int step = 0; step < kStepsMax; ++step) {
      std::size_t last = first;
      for (; last + 1 < n; ++last) {
        const double near = std::abs(t.diagonal[last]) + std::abs(t.diagonal[last + 1]);
        if (t.beside[last] <= 1e-32 * near * near) break;
      }
      if (last == first) break;
      const double behind = t.beside[last];
      ql_step(t.diagonal, t.beside, first, last);
      t.beside[last] = last + 1 < n ? behind : 0;
    }
  }
  for (double& value : t.diagonal) value *= unit;
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

Scaled scaled(Dense matrix) {
  Scaled result;
  for (double& value : matrix.values) {
    if (!std::isfinite(value)) value = 0;
    result.largest = std::max(result.largest, std::abs(value));
  }
  // A power of two leaves the digits as they are.
  if (result.largest > 0)
    result.unit = std::ldexp(1.0, std::max(-1000, std::ilogb(result.largest)));
  const double inverse = 1 / result.unit;
  for (double& value : matrix.values) value *= inverse;
  result.rows = row_gram(matrix);
  result.matrix = std::move(matrix);
  return result;
}

Spectrum spectrum_of(const Scaled& scaled) {
  if (scaled.largest == 0) return {};
  const bool wide = scaled.matrix.rows <= scaled.matrix.columns;
  Spectrum spectrum{eigenvalues(wide ? scaled.rows : gram(scaled.matrix))};
  for (double& energy : spectrum.energies)
    energy = std::max(0.0, energy) * scaled.unit * scaled.unit;
  return spectrum;
}

Spectrum spectrum_of(const Dense& matrix) { return spectrum_of(scaled(matrix)); }

void make_unit(std::vector<double>& values) {
  const double length = std::sqrt(dot(values, values));
  if (length > 0)
    for (double& value : values) value /= length;
}

Dense centred(Dense gram) {
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
  make_unit(gram.values);
  return gram;
}

double linear_cka(const Dense& gram_x, const Dense& gram_y) {
  assert(gram_x.rows == gram_y.rows);
  return std::clamp(dot(centred(gram_x).values, centred(gram_y).values), 0.0, 1.0);
}

}  // namespace tensordiff
