// What a step may have been computed from: dumped tensors, and what a few of them make that nobody
// dumped. Each is tried on A, the likeliest first, so that a wrong one costs only time.

#pragma once

#include <functional>
#include <vector>

#include "diagnose/operators/context.h"
#include "diagnose/operators/operator.h"

namespace tensordiff::operators {

// The same rows for every sequence, as positions have them.
class Repeated final : public Operator {
 public:
  Repeated(OperatorPtr of, Extents extents) : of_(std::move(of)), extents_(std::move(extents)) {}

  std::string_view kind() const override { return "repeat"; }
  const Extents& extents() const override { return extents_; }
  Block predict(const Reading& from, const Grid& grid) const override;
  std::vector<Change> changes(const Context& context) const override;
  std::string text() const override { return of_->text(); }

 private:
  OperatorPtr of_;
  Extents extents_;
};

// Candidates are given to it until it takes one.
using Accept = std::function<bool(const OperatorPtr&)>;

// What stands around a candidate, such as the weight that multiplies it, tried on A.
class Around {
 public:
  using Wrap = std::function<OperatorPtr(const OperatorPtr& input)>;
  Around(const Context& context, Wrap wrap) : context_(context), wrap_(std::move(wrap)) {}

  // Whether the whole is what A computes; it is kept then.
  bool accept(const OperatorPtr& input);
  // What the whole leaves of A in these rows.
  double rest(const OperatorPtr& input, const std::vector<uint64_t>& rows) const;
  const OperatorPtr& found() const { return found_; }
  // The whole around a candidate; null where it does not fit.
  OperatorPtr wrapped(const OperatorPtr& input) const { return wrap_(input); }
  const Context& context() const { return context_; }

 private:
  const Context& context_;
  Wrap wrap_;
  OperatorPtr found_;
};

// Dumped tensors of as many rows and features, however the rows are split; of tokens, the nearest.
std::vector<OperatorPtr> rows_like(const Context& context, const Extents& extents);

// Dumped tensors of these extents, then sums of two and three of them.
bool try_streams(const Context& context, const Extents& extents, const Accept& accept);

// What a projection may read: so many features in as many rows as `rows` has. Dumped tensors, one
// token of each sequence, functions and gated products of them, attention.
bool try_inputs(Around& around, const Extents& rows, uint64_t features);

}  // namespace tensordiff::operators
