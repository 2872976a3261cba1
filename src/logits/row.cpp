#include "logits/row.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace tensordiff {
namespace {

constexpr std::size_t kMost = 10;  // The largest of kTops.

// The most likely words, the likeliest first; of equal ones the first.
std::vector<std::size_t> most_likely(std::span<const double> row) {
  std::vector<std::size_t> order(row.size());
  std::iota(order.begin(), order.end(), 0);
  const std::size_t count = std::min(kMost, row.size());
  std::ranges::partial_sort(
      order, order.begin() + static_cast<ptrdiff_t>(count),
      [&](std::size_t x, std::size_t y) { return row[x] != row[y] ? row[x] > row[y] : x < y; });
  order.resize(count);
  return order;
}

double overlap(std::span<const std::size_t> a, std::span<const std::size_t> b) {
  std::size_t both = 0;
  for (const std::size_t word : a) both += std::ranges::find(b, word) != b.end() ? 1 : 0;
  return static_cast<double>(both) / static_cast<double>(a.size());
}

}  // namespace

bool to_log_probs(std::span<double> row) {
  double most = -std::numeric_limits<double>::infinity();
  for (const double value : row) {
    if (std::isnan(value)) return false;
    most = std::max(most, value);
  }
  if (!std::isfinite(most)) return false;
  double sum = 0;
  for (const double value : row) sum += std::exp(value - most);
  const double shift = most + std::log(sum);
  for (double& value : row) value -= shift;
  return true;
}

double divergence(std::span<const double> log_p, std::span<const double> log_q) {
  double sum = 0;
  for (std::size_t i = 0; i < log_p.size(); ++i) {
    const double p = std::exp(log_p[i]);
    if (p > 0) sum += p * (log_p[i] - log_q[i]);
  }
  return std::max(sum, 0.0);  // Rounding may leave a little less than nothing.
}

PositionDiff compare_position(std::span<const double> a, std::span<const double> b,
                              std::optional<int64_t> next) {
  PositionDiff diff;
  diff.usable = true;
  diff.kl = divergence(a, b);
  const std::vector<std::size_t> top_a = most_likely(a), top_b = most_likely(b);
  diff.top_a = static_cast<int64_t>(top_a[0]);
  diff.top_b = static_cast<int64_t>(top_b[0]);
  // A tie that the other side breaks otherwise is no disagreement.
  diff.same_top =
      top_a[0] == top_b[0] || (a[top_a[0]] == a[top_b[0]] && b[top_a[0]] == b[top_b[0]]);
  if (top_a.size() > 1) {
    diff.margin_a = a[top_a[0]] - a[top_a[1]];
    diff.margin_b = b[top_b[0]] - b[top_b[1]];
  }
  for (std::size_t k = 0; k < std::size(kTops); ++k) {
    const std::size_t count = std::min(kTops[k], top_a.size());
    diff.overlap[k] = overlap(std::span(top_a).first(count), std::span(top_b).first(count));
  }
  diff.told = next && *next >= 0 && static_cast<uint64_t>(*next) < a.size();
  const std::size_t word = diff.told ? static_cast<std::size_t>(*next) : top_a[0];
  diff.log_prob_a = a[word];
  diff.log_prob_b = b[word];
  return diff;
}

}  // namespace tensordiff
