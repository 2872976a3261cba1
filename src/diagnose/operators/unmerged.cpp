#include "diagnose/operators/unmerged.h"

namespace tensordiff::operators {

Block Unmerged::predict(const Reading& from, const Grid& grid) const {
  Grid all;
  for (uint64_t row = 0; row < extents().rows(); ++row) all.rows.push_back(row);
  const Block whole = of_->predict(from, all);
  if (whole.empty()) return {};
  const uint64_t features = extents().features, dim = features / heads_;
  Block made{grid.columns.empty() ? features : grid.columns.size()};
  for (const uint64_t row : grid.rows)
    for (uint64_t c = 0; c < made.features; ++c) {
      const uint64_t column = grid.columns.empty() ? c : grid.columns[c];
      const uint64_t flat = row % tokens_ * features + column;
      const uint64_t head = flat / (tokens_ * dim), token = flat % (tokens_ * dim) / dim;
      made.values.push_back(whole.row(row - row % tokens_ + token)[head * dim + flat % dim]);
    }
  return made;
}

}  // namespace tensordiff::operators
