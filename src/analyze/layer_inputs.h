// Inputs of linear layers on real data, out of a dump (--activations), and what a changed weight
// makes of them.

#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "analyze/study.h"

namespace tensordiff {

class LayerInputs {
 public:
  // Both must outlive it.
  LayerInputs(const Catalog& dump, const Study& study);

  // ‖X Δᵀ‖² / ‖X Wᵀ‖² over a sample of tokens and outputs; nothing where the dump does not have the
  // input of this layer.
  std::optional<double> output_error(const Row& pair) const;

 private:
  const Tensor* input_of(const Row& pair) const;
  const Tensor* by_name(const std::string& name) const;
  // Whether the weight is stored as [in, out]; nothing where its input fits neither axis.
  std::optional<bool> turned(const Row& pair, const Tensor& input) const;

  std::map<std::string, const Tensor*> names_;
  std::map<std::tuple<Tower, int32_t, Role>, const Tensor*> roles_;
  bool inputs_first_ = false;  // What most weights that are not square do.
};

}  // namespace tensordiff
