#include "diagnose/sample/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "compare/kernels/dense.h"

namespace tensordiff {

// Sums are taken without looking at each value. Only where one is not finite, or too large to be
// squared, are they taken again.

double norm(std::span<const double> x) {
  const double all = kernels::dot(x.data(), x.data(), x.size());
  if (std::isfinite(all)) return std::sqrt(all);
  double sum = 0;
  for (const double value : x)
    if (std::isfinite(value)) sum += value * value;
  return std::sqrt(sum);
}

double distance(std::span<const double> x, std::span<const double> y) {
  const std::size_t count = std::min(x.size(), y.size());
  const double all = kernels::squares_apart(x.data(), y.data(), count);
  if (std::isfinite(all)) return std::sqrt(all);
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double apart = x[i] - y[i];
    if (std::isfinite(apart)) sum += apart * apart;
  }
  return std::sqrt(sum);
}

double factor_between(std::span<const double> x, std::span<const double> y) {
  const std::size_t count = std::min(x.size(), y.size());
  double xy = kernels::dot(x.data(), y.data(), count);
  double xx = kernels::dot(x.data(), x.data(), count);
  if (std::isfinite(xy) && std::isfinite(xx)) return xx > 0 ? xy / xx : 0;
  xy = xx = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (!std::isfinite(x[i]) || !std::isfinite(y[i])) continue;
    xy += x[i] * y[i];
    xx += x[i] * x[i];
  }
  return xx > 0 ? xy / xx : 0;
}

std::vector<uint64_t> farthest_rows(const Matrix& a, const Matrix& b, std::size_t count) {
  if (!same_form(a, b)) return {};
  std::vector<std::pair<double, uint64_t>> gaps;
  for (uint64_t row = 0; row < a.rows(); ++row)
    gaps.emplace_back(-distance(a.row(row), b.row(row)), row);
  count = std::min(gaps.size(), count);
  std::ranges::partial_sort(gaps, gaps.begin() + static_cast<std::ptrdiff_t>(count));
  std::vector<uint64_t> rows;
  for (std::size_t i = 0; i < count; ++i) rows.push_back(gaps[i].second);
  return rows;
}

std::string ranges_text(const std::vector<uint64_t>& sorted) {
  constexpr std::size_t kRangesMax = 6;
  std::string out;
  std::size_t ranges = 0;
  for (std::size_t i = 0; i < sorted.size();) {
    std::size_t end = i + 1;
    while (end < sorted.size() && sorted[end] == sorted[end - 1] + 1) ++end;
    if (ranges++ == kRangesMax) return out + ", …";
    if (!out.empty()) out += ", ";
    out += end - i == 1 ? fmt::format("{}", sorted[i])
                        : fmt::format("{}–{}", sorted[i], sorted[end - 1]);
    i = end;
  }
  return out;
}

std::string factor_text(double factor, std::span<const uint64_t> sizes, double tolerance) {
  std::string text = human_number(factor);
  const double whole = std::round(factor);
  if (whole != 0 && near(factor, whole, tolerance)) return fmt::format("{:.0f}", whole);
  for (const uint64_t size : sizes) {
    const double root = std::sqrt(static_cast<double>(size));
    if (near(factor, root, tolerance)) return fmt::format("{} (√{})", text, size);
    if (near(factor, 1 / root, tolerance)) return fmt::format("{} (1/√{})", text, size);
  }
  const double inverse = std::round(1 / factor);
  if (std::isfinite(inverse) && inverse != 0 && near(1 / factor, inverse, tolerance))
    return fmt::format("{} (1/{:.0f})", text, inverse);
  return text;
}

bool near(double x, double y, double tolerance) {
  return std::abs(x - y) <= tolerance * std::max(std::abs(x), std::abs(y));
}

}  // namespace tensordiff
