#include "tensor/sample.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tensordiff {
namespace {

// The splitmix64 generator, as a function of the step: no state, no seed to get wrong.
uint64_t scatter(uint64_t step) {
  uint64_t bits = (step + 1) * 0x9e3779b97f4a7c15ULL;
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9ULL;
  bits = (bits ^ bits >> 27) * 0x94d049bb133111ebULL;
  return bits ^ bits >> 31;
}

// Brings values to at most one in size, so that the squares of large ones stay finite.
void normalise(std::vector<double>& values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  if (largest == 0) return;
  for (double& value : values) value /= largest;
}

void centre(std::vector<double>& values) {
  const double mean =
      std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  for (double& value : values) value -= mean;
}

bool constant(std::span<const double> values) {
  return std::ranges::all_of(values, [&](double value) { return value == values[0]; });
}

}  // namespace

std::vector<uint64_t> sample_positions(uint64_t count, std::size_t wanted) {
  std::vector<uint64_t> positions(std::min<uint64_t>(count, wanted));
  std::iota(positions.begin(), positions.end(), 0);
  if (positions.size() == count) return positions;
  for (uint64_t& position : positions) position = scatter(position) % count;
  std::ranges::sort(positions);
  return positions;
}

std::vector<double> values_at(const Reader& reader, std::span<const uint64_t> positions) {
  std::vector<double> values;
  values.reserve(positions.size());
  for (const uint64_t position : positions) values.push_back(reader.value(position));
  return values;
}

double unexplained(std::span<const double> x, std::span<const double> y) {
  std::vector<double> left, right;
  for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    if (!std::isfinite(x[i]) || !std::isfinite(y[i])) continue;
    left.push_back(x[i]);
    right.push_back(y[i]);
  }
  if (left.size() < 3) return 1;
  // A line has no slope to find in a constant: it explains another only by being the same.
  if (constant(left) || constant(right)) return left == right ? 0 : 1;

  normalise(left), centre(left);
  normalise(right), centre(right);
  double xx = 0, yy = 0, xy = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    xx += left[i] * left[i];
    yy += right[i] * right[i];
    xy += left[i] * right[i];
  }
  if (xx == 0 || yy == 0) return 1;
  return std::clamp(1 - xy / xx * (xy / yy), 0.0, 1.0);
}

}  // namespace tensordiff
