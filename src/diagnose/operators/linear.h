// y = x · Wᵀ + b, with a weight of the checkpoint or one that A's dumps tell.

#pragma once

#include "diagnose/operators/operator.h"
#include "diagnose/operators/parameters.h"

namespace tensordiff::operators {

class Linear final : public Operator {
 public:
  struct Bias {
    std::vector<double> values;  // Empty: none.
    double times = 1;
  };
  // `bits`: of fraction, that what is multiplied is rounded to; 0: it is not.
  Linear(Extents extents, TablePtr weight, Bias bias, OperatorPtr input, int bits = 0)
      : extents_(std::move(extents)),
        weight_(std::move(weight)),
        bias_(std::move(bias)),
        input_(std::move(input)),
        bits_(bits) {}

  std::string_view kind() const override { return "linear"; }
  const Extents& extents() const override { return extents_; }
  Block predict(const Reading& from, const Grid& grid) const override;
  std::vector<Change> changes(const Context& context) const override;
  std::string text() const override;

 private:
  OperatorPtr with(TablePtr weight) const {
    return std::make_shared<Linear>(extents_, std::move(weight), bias_, input_);
  }
  void change_bias(std::vector<Change>& changes) const;
  void change_weight(const Context& context, std::vector<Change>& changes) const;
  void change_rows(const Context& context, std::vector<Change>& changes) const;
  void change_products(std::vector<Change>& changes) const;
  void change_columns(const Context& context, std::vector<Change>& changes) const;

  Extents extents_;
  TablePtr weight_;  // [out, in]
  Bias bias_;
  OperatorPtr input_;
  int bits_;
};

}  // namespace tensordiff::operators
