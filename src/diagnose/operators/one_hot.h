// Values that make attention give its probabilities: key s holds 1 at place s and 0 elsewhere, in
// each head.

#pragma once

#include "diagnose/operators/operator.h"

namespace tensordiff::operators {

class OneHot final : public Operator {
 public:
  OneHot(std::vector<uint64_t> rows_by_axis, uint64_t heads)
      : extents_{std::move(rows_by_axis), 0, Layout::tokens} {
    extents_.features = heads * extents_.rows_by_axis.back();
  }

  std::string_view kind() const override { return "one"; }
  const Extents& extents() const override { return extents_; }
  std::vector<Change> changes(const Context&) const override { return {}; }
  std::string text() const override { return "1"; }

  Block predict(const Reading&, const Grid& grid) const override {
    const uint64_t keys = extents_.rows_by_axis.back();
    Block made{extents_.features, std::vector<double>(grid.rows.size() * extents_.features)};
    for (std::size_t r = 0; r < grid.rows.size(); ++r)
      for (uint64_t c = grid.rows[r] % keys; c < extents_.features; c += keys) made.row(r)[c] = 1;
    return made;
  }

 private:
  Extents extents_;
};

// The heads of another operator as rows of their own: [batch, heads, tokens] rows of what that one
// gives for one head.
class HeadsApart final : public Operator {
 public:
  HeadsApart(OperatorPtr of, uint64_t heads)
      : of_(std::move(of)), heads_(heads), extents_(of_->extents()) {
    extents_.rows_by_axis.insert(extents_.rows_by_axis.begin() + 1, heads);
    extents_.features /= heads;
  }

  std::string_view kind() const override { return of_->kind(); }
  const Extents& extents() const override { return extents_; }
  Standing standing() const override { return of_->standing(); }
  std::string text() const override { return of_->text(); }

  std::vector<Change> changes(const Context& context) const override {
    std::vector<Change> changes;
    lift(
        of_->changes(context),
        [&](const OperatorPtr& made) { return std::make_shared<HeadsApart>(made, heads_); },
        changes);
    return changes;
  }

  Block predict(const Reading& from, const Grid& grid) const override {
    const uint64_t tokens = extents_.rows_by_axis.back(), features = extents_.features;
    Grid inner;
    for (const uint64_t row : grid.rows)
      inner.rows.push_back(row / tokens / heads_ * tokens + row % tokens);
    const Block all = of_->predict(from, inner);
    if (all.empty()) return {};
    Block made{grid.columns.empty() ? features : grid.columns.size()};
    for (std::size_t r = 0; r < grid.rows.size(); ++r)
      for (uint64_t c = 0; c < made.features; ++c)
        made.values.push_back(all.row(r)[grid.rows[r] / tokens % heads_ * features +
                                         (grid.columns.empty() ? c : grid.columns[c])]);
    return made;
  }

 private:
  OperatorPtr of_;
  uint64_t heads_;
  Extents extents_;
};

}  // namespace tensordiff::operators
