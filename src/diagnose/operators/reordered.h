// Rows of another operator, in an order.

#pragma once

#include "diagnose/operators/operator.h"

namespace tensordiff::operators {

class Rows final : public Operator {
 public:
  // Row r of it is row ids[r] of `of`.
  Rows(OperatorPtr of, Extents extents, std::vector<uint64_t> ids)
      : of_(std::move(of)), extents_(std::move(extents)), ids_(std::move(ids)) {}

  std::string_view kind() const override { return "rows"; }
  const Extents& extents() const override { return extents_; }
  Block predict(const Reading& from, const Grid& grid) const override;
  std::vector<Change> changes(const Context& context) const override;
  std::string text() const override { return "rows of " + of_->text(); }

 private:
  OperatorPtr of_;
  Extents extents_;
  std::vector<uint64_t> ids_;
};

// For each line of `lines` the one of `among` that it equals but for `tolerance` of its size; its
// own place where that one does. Nothing where one of them equals none.
std::optional<std::vector<uint64_t>> places_of(const Block& lines, const Block& among,
                                               double tolerance);

// Columns as lines.
Block turned(const Block& block);

}  // namespace tensordiff::operators
