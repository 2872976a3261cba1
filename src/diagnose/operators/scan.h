// A selective scan, as in Mamba: state = exp(Δ·A)·state + Δ·B·x, y = (C·state + D·x) · f(gate).

#pragma once

#include "diagnose/operators/combine.h"
#include "diagnose/operators/context.h"
#include "diagnose/operators/sources.h"

namespace tensordiff::operators {

struct ScanForm {
  uint64_t states = 0;
  std::vector<double> a_log;                  // [channels, states]
  std::vector<double> d;                      // [channels]
  const ActivationFunction* step = nullptr;   // Of the step sizes.
  const ActivationFunction* gate = nullptr;   // Null: no gate.
  bool skip = true;                           // D · x is added.
  const ActivationFunction* decay = nullptr;  // A = −f(A_log).
  bool swapped = false;                       // B and C in each other's place.
};

class Scan final : public Operator {
 public:
  // `mix` holds the input of the step sizes, B and C; `step` what their projection gives.
  struct Inputs {
    OperatorPtr x, step, mix, gate;
  };
  Scan(Extents extents, ScanForm form, Inputs inputs)
      : extents_(std::move(extents)), form_(std::move(form)), inputs_(std::move(inputs)) {}

  std::string_view kind() const override { return "scan"; }
  const Extents& extents() const override { return extents_; }
  Block predict(const Reading& from, const Grid& grid) const override;
  std::vector<Change> changes(const Context& context) const override;
  std::string text() const override { return "the scan of " + inputs_.x->text(); }

 private:
  bool run(const Reading& from, uint64_t sequence, Block& out) const;

  Extents extents_;
  ScanForm form_;
  Inputs inputs_;
};

// A scan that gives so many features, with the parameters of the module that contains the step.
bool try_scan(Around& around, const Extents& rows, uint64_t features);

}  // namespace tensordiff::operators
