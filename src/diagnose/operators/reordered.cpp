#include "diagnose/operators/reordered.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

namespace tensordiff::operators {
namespace {

double square(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return sum;
}

double gap(std::span<const double> x, std::span<const double> y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += (x[i] - y[i]) * (x[i] - y[i]);
  return sum;
}

// A sum with weights that differ: lines that hold the same values in another order differ in it.
double key_of(std::span<const double> values) {
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    sum += values[i] * std::cos(1 + static_cast<double>(i));
  return sum;
}

}  // namespace

Block Rows::predict(const Reading& from, const Grid& grid) const {
  Grid inner{{}, grid.columns};
  for (const uint64_t row : grid.rows) inner.rows.push_back(ids_[row]);
  return of_->predict(from, inner);
}

std::vector<Change> Rows::changes(const Context& context) const {
  std::vector<Change> changes;
  lift(
      of_->changes(context),
      [&](const OperatorPtr& made) { return std::make_shared<Rows>(made, extents_, ids_); },
      changes);
  return changes;
}

std::optional<std::vector<uint64_t>> places_of(const Block& lines, const Block& among,
                                               double tolerance) {
  if (lines.empty() || among.empty() || lines.features != among.features) return std::nullopt;
  const auto line = [](const Block& of, uint64_t at) { return std::span(of.row(at), of.features); };
  std::multimap<double, uint64_t> by_key;
  for (uint64_t i = 0; i < among.rows(); ++i) by_key.emplace(key_of(line(among, i)), i);
  std::vector<uint64_t> places;
  for (uint64_t i = 0; i < lines.rows(); ++i) {
    const std::span<const double> wanted = line(lines, i);
    const double most = tolerance * tolerance * square(wanted);
    if (i < among.rows() && gap(wanted, line(among, i)) <= most) {
      places.push_back(i);
      continue;
    }
    // By Cauchy and Schwarz the keys of two lines are no farther apart than this.
    const double reach = std::sqrt(most * static_cast<double>(lines.features));
    const double key = key_of(wanted);
    double least = most;
    std::optional<uint64_t> found;
    for (auto at = by_key.lower_bound(key - reach); at != by_key.end() && at->first <= key + reach;
         ++at)
      if (const double left = gap(wanted, line(among, at->second));
          left <= least && !(found && left == least))
        least = left, found = at->second;
    if (!found) return std::nullopt;
    places.push_back(*found);
  }
  return places;
}

Block turned(const Block& block) {
  Block made{block.rows(), std::vector<double>(block.values.size())};
  for (uint64_t r = 0; r < block.rows(); ++r)
    for (uint64_t c = 0; c < block.features; ++c) made.row(c)[r] = block.row(r)[c];
  return made;
}

}  // namespace tensordiff::operators
