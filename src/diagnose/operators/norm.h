// y = w ⊙ (x − c·mean) / √(ms + ε) + β, over the features of a row or over groups of them.

#pragma once

#include "diagnose/operators/operator.h"

namespace tensordiff::operators {

struct NormForm {
  bool centred = false;  // The mean is subtracted: LayerNorm; else RMSNorm.
  double epsilon = 0;
  uint64_t group = 0;          // Features that are normalised together.
  std::vector<double> weight;  // One for each feature of a group or of a row; empty: 1.
  std::vector<double> bias;    // As the weight; empty: 0.
  double plus = 0;             // Added to the weight, as some models do with 1.
  std::string name;            // Of the weight in the checkpoint; empty: fitted.
  // What goes in is what came out in A without its weight: the epsilon is what its mean square
  // lacks of 1, times `epsilon`.
  bool of_own_output = false;
};

class Norm final : public Operator {
 public:
  Norm(NormForm form, OperatorPtr input) : form_(std::move(form)), input_(std::move(input)) {}

  std::string_view kind() const override { return form_.centred ? "layer norm" : "RMS norm"; }
  const Extents& extents() const override { return input_->extents(); }
  Block predict(const Reading& from, const Grid& grid) const override;
  std::vector<Change> changes(const Context& context) const override;
  Standing standing() const override {
    return form_.name.empty() ? Standing::fitted : Standing::given;
  }
  std::string text() const override;
  const OperatorPtr& input() const { return input_; }

 private:
  OperatorPtr with(const NormForm& form) const { return std::make_shared<Norm>(form, input_); }
  void change_epsilon(const Context& context, std::vector<Change>& changes) const;
  void change_weight(const Context& context, std::vector<Change>& changes) const;

  NormForm form_;
  OperatorPtr input_;
};

}  // namespace tensordiff::operators
