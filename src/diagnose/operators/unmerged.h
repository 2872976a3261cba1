// Heads that were put together without bringing tokens before heads: [heads, tokens, dim] read as
// [tokens, heads · dim].

#pragma once

#include "diagnose/operators/operator.h"

namespace tensordiff::operators {

class Unmerged final : public Operator {
 public:
  Unmerged(OperatorPtr of, uint64_t heads, uint64_t tokens)
      : of_(std::move(of)), heads_(heads), tokens_(tokens) {}

  std::string_view kind() const override { return "unmerged heads"; }
  const Extents& extents() const override { return of_->extents(); }
  Block predict(const Reading& from, const Grid& grid) const override;
  std::vector<Change> changes(const Context&) const override { return {}; }
  std::string text() const override { return of_->text(); }

 private:
  OperatorPtr of_;
  uint64_t heads_, tokens_;
};

}  // namespace tensordiff::operators
