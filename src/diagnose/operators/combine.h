// Operators that put others together value by value: sums, functions, gated products, one row of
// many. They have no parameters of a checkpoint, so that dumps alone tell them.

#pragma once

#include <string>
#include <vector>

#include "diagnose/operators/operator.h"
#include "diagnose/replay/activation.h"

namespace tensordiff::operators {

struct Term {
  OperatorPtr of;
  double times = 1;
  std::vector<double> by_column = {};  // A factor for each feature, as of layer scale.
  std::string scaled_by = {};          // Its name in the checkpoint.
};

// y = Σ times · by_column ⊙ x
class Sum final : public Operator {
 public:
  Sum(Extents extents, std::vector<Term> terms)
      : extents_(std::move(extents)), terms_(std::move(terms)) {}

  std::string_view kind() const override { return "sum"; }
  const Extents& extents() const override { return extents_; }
  Block predict(const Reading& from, const Grid& grid) const override;
  std::vector<Change> changes(const Context& context) const override;
  Standing standing() const override;
  std::string text() const override;
  const std::vector<Term>& terms() const { return terms_; }

 private:
  void change_term(const Context& context, std::size_t at, std::vector<Change>& changes) const;

  Extents extents_;
  std::vector<Term> terms_;
};
OperatorPtr sum_of(std::vector<OperatorPtr> terms);

// y = f(x)
class Map final : public Operator {
 public:
  Map(const ActivationFunction& function, OperatorPtr of)
      : function_(function), of_(std::move(of)) {}

  std::string_view kind() const override { return "elementwise"; }
  const Extents& extents() const override { return of_->extents(); }
  Block predict(const Reading& from, const Grid& grid) const override;
  std::vector<Change> changes(const Context& context) const override;
  Standing standing() const override { return Standing::fitted; }
  std::string text() const override;

 private:
  const ActivationFunction& function_;
  OperatorPtr of_;
};

// y = f(gate) · up
class Gated final : public Operator {
 public:
  Gated(const ActivationFunction& function, OperatorPtr gate, OperatorPtr up)
      : function_(function), gate_(std::move(gate)), up_(std::move(up)) {}

  std::string_view kind() const override { return "product"; }
  const Extents& extents() const override { return gate_->extents(); }
  Block predict(const Reading& from, const Grid& grid) const override;
  std::vector<Change> changes(const Context& context) const override;
  Standing standing() const override { return Standing::fitted; }
  std::string text() const override;

 private:
  const ActivationFunction& function_;
  OperatorPtr gate_, up_;
};

// Some columns of another, in an order.
class Columns final : public Operator {
 public:
  Columns(OperatorPtr of, std::vector<uint64_t> picked);
  Columns(OperatorPtr of, uint64_t first, uint64_t count);

  std::string_view kind() const override { return "slice"; }
  const Extents& extents() const override { return extents_; }
  Block predict(const Reading& from, const Grid& grid) const override;
  std::vector<Change> changes(const Context&) const override { return {}; }
  std::string text() const override;

 private:
  OperatorPtr of_;
  Extents extents_;
  std::vector<uint64_t> picked_;
};

// The features of several operators, one behind the other.
class Joined final : public Operator {
 public:
  explicit Joined(std::vector<OperatorPtr> parts);

  std::string_view kind() const override { return "concatenation"; }
  const Extents& extents() const override { return extents_; }
  Block predict(const Reading& from, const Grid& grid) const override;
  std::vector<Change> changes(const Context&) const override { return {}; }
  std::string text() const override { return parts_[0]->text() + " and others"; }

 private:
  std::vector<OperatorPtr> parts_;
  Extents extents_;
};

// One row for all of a sequence: [batch, tokens, features] -> [batch, features].
class Pooled final : public Operator {
 public:
  enum class By { first, last, mean, mean_of_others, maximum };
  Pooled(OperatorPtr of, By by);

  std::string_view kind() const override { return "pooling"; }
  const Extents& extents() const override { return extents_; }
  Block predict(const Reading& from, const Grid& grid) const override;
  std::vector<Change> changes(const Context& context) const override;
  Standing standing() const override { return Standing::fitted; }
  std::string text() const override;

 private:
  OperatorPtr of_;
  Extents extents_;
  By by_;
};

// The functions that stand for nothing at all, for a missing activation.
const ActivationFunction& identity_function();

}  // namespace tensordiff::operators
