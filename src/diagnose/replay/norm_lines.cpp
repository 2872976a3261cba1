#include "diagnose/replay/norm_lines.h"

#include <cmath>

#include "diagnose/sample/fit.h"

namespace tensordiff {

void LeastSquares::add(double x, double y, double z) {
  if (!std::isfinite(x + y + z)) return;
  xx += x * x, xy += x * y, yy += y * y, xz += x * z, yz += y * z;
}

void LeastSquares::solve(double& p, double& q) const {
  const double determinant = xx * yy - xy * xy;
  if (determinant > 1e-9 * xx * yy) {
    p = (yy * xz - xy * yz) / determinant;
    q = (xx * yz - xy * xz) / determinant;
  } else {
    p = xx > 0 && xx >= yy ? xz / xx : 0;
    q = yy > xx ? yz / yy : 0;
  }
}

Matrix without_means(Matrix x) {
  for (uint64_t row = 0; row < x.rows(); ++row) {
    const std::span<double> token = x.row(row);
    double mean = 0;
    for (const double value : token) mean += value / static_cast<double>(token.size());
    for (double& value : token) value -= mean;
  }
  return x;
}

Matrix unit_tokens(Matrix x, bool centred) {
  if (centred) x = without_means(std::move(x));
  for (uint64_t row = 0; row < x.rows(); ++row) {
    const std::span<double> token = x.row(row);
    const double size = norm(token) / std::sqrt(static_cast<double>(token.size()));
    if (size > 0)
      for (double& value : token) value /= size;
  }
  return x;
}

Matrix on_lines(const Matrix& unit, const NormLines& lines) {
  return filled(unit, [&](uint64_t row, uint64_t i) {
    return lines.slope[i] * unit.row(row)[i] + lines.start[i];
  });
}

NormLines lines_between(const Matrix& unit, const Matrix& out, bool centred) {
  NormLines lines{centred, std::vector<double>(out.features), std::vector<double>(out.features)};
  // Without a mean to take away there is no start either.
  const double start = centred ? 1 : 0;
  std::vector<LeastSquares> sums(out.features);
  for (uint64_t row = 0; row < out.rows(); ++row) {
    const double* from = unit.row(row).data();
    const double* to = out.row(row).data();
    for (uint64_t i = 0; i < out.features; ++i) sums[i].add(from[i], start, to[i]);
  }
  for (uint64_t i = 0; i < out.features; ++i) sums[i].solve(lines.slope[i], lines.start[i]);
  return lines;
}

}  // namespace tensordiff
