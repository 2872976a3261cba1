#include "diagnose/noise/norms.h"

#include <algorithm>
#include <cmath>

#include "diagnose/limits.h"
#include "diagnose/sample/fit.h"

namespace tensordiff {
namespace {

constexpr uint64_t kTokensMin = 8;
constexpr uint64_t kFeaturesMin = 16;
constexpr double kClip = 8;           // Roundoffs: what one element may say at most.
constexpr double kSmall = 0.1;        // Of the root mean square: below it roundings are absolute.
constexpr double kShrinkMin = 0.125;  // Roundoffs.

struct Sums {
  std::vector<double> sum, count;
  explicit Sums(uint64_t size) : sum(size), count(size) {}
  void add(uint64_t at, double value) { sum[at] += value, count[at] += 1; }
  // The means of what was added, where anything was.
  std::vector<double> means() const {
    std::vector<double> result;
    for (std::size_t i = 0; i < sum.size(); ++i)
      if (count[i] > 0) result.push_back(sum[i] / count[i]);
    return result;
  }
};

}  // namespace

std::optional<double> shared_shrink(const Matrix& a, const Matrix& b, double roundoff) {
  if (a.rows() < kTokensMin || a.features < kFeaturesMin || roundoff == 0) return std::nullopt;
  const double typical = norm(a.values) / std::sqrt(static_cast<double>(a.values.size()));
  Sums by_token(a.rows()), by_feature(a.features);
  for (uint64_t row = 0; row < a.rows(); ++row) {
    for (uint64_t i = 0; i < a.features; ++i) {
      const double x = a.row(row)[i], growth = (b.row(row)[i] - x) / x;
      if (!std::isfinite(growth) || std::abs(x) < kSmall * typical) continue;
      const double clipped = std::clamp(growth, -kClip * roundoff, kClip * roundoff);
      by_token.add(row, clipped);
      by_feature.add(i, clipped);
    }
  }
  const std::vector<double> features = by_feature.means(), tokens = by_token.means();
  if (features.size() < kFeaturesMin || tokens.size() < kTokensMin) return std::nullopt;
  const auto count = static_cast<double>(features.size());
  double mean = 0, spread = 0;
  for (const double value : features) mean += value / count;
  for (const double value : features) spread += (value - mean) * (value - mean) / count;
  const double sigma = std::sqrt(spread / count);
  const auto same_side = std::ranges::count_if(
      tokens, [&](double value) { return std::signbit(value) == std::signbit(mean); });
  const bool shared = static_cast<double>(same_side) >= limits::kOneSide * double(tokens.size());
  if (std::abs(mean) < std::max(limits::kSigmas * sigma, kShrinkMin * roundoff) || !shared)
    return std::nullopt;
  return mean;
}

}  // namespace tensordiff
