#include "diagnose/noise/structure.h"

#include <algorithm>
#include <cmath>

#include "diagnose/sample/fit.h"

namespace tensordiff {
namespace {

// Noise spreads: a factor for each of n tokens explains 1/n of its energy. Half is structure.
constexpr double kStructured = 0.5;
constexpr uint64_t kStructureSizeMin = 8;  // Of the axis that is averaged over.
// The largest of 10^9 normal errors is 6 sigma; noise that scales with the value has longer tails.
constexpr double kOutlier = 12;

struct Structure {
  double rows = 0;     // Share of the error that one factor for each token explains.
  double columns = 0;  // Share of the error that one offset for each feature explains.
};

Structure structure_of(const Site& site, const Extent& extent) {
  Structure share;
  const Result<Matrix> a = read_matrix(site.views.a, extent);
  const Result<Matrix> b = read_matrix(site.views.b, extent);
  if (!a.ok() || !b.ok()) return share;
  const Matrix& x = a.value();
  const double all = distance(x.values, b.value().values);
  if (all == 0) return share;
  double rows = 0;
  std::vector<double> mean(x.features);
  for (uint64_t row = 0; row < x.rows(); ++row) {
    const auto of_a = x.row(row), of_b = b.value().row(row);
    const double excess = factor_between(of_a, of_b) - 1;
    rows += excess * excess * norm(of_a) * norm(of_a);
    for (uint64_t i = 0; i < x.features; ++i) mean[i] += of_b[i] - of_a[i];
  }
  double columns = 0;
  for (const double sum : mean) columns += sum * sum / static_cast<double>(x.rows());
  if (x.features >= kStructureSizeMin) share.rows = rows / (all * all);
  if (x.rows() >= kStructureSizeMin) share.columns = columns / (all * all);
  return share;
}

}  // namespace

std::string unlike_noise(const Site& site, const Extent& extent, double budget) {
  const Diff& diff = site.comparison.diff;
  const double count = static_cast<double>(std::max<uint64_t>(1, diff.compared));
  const double size = site.comparison.a.norm.value_or(0) / std::sqrt(count);
  const double scale = std::max(size, std::abs(diff.a_there.value_or(0)));
  if (diff.max_abs.value_or(0) > kOutlier * budget * scale)
    return "a few elements stand out of the noise";
  const Structure structure = structure_of(site, extent);
  if (structure.rows > kStructured) return "one factor for each token explains most of the error";
  if (structure.columns > kStructured)
    return "one offset for each feature explains most of the error";
  return "";
}

}  // namespace tensordiff
