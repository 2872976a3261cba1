// A few rows of a pair of weights, to see what cannot explain it.
//
// Weights that were trained on differ in a way that nothing here explains. A few rows, spread over
// the tensor, tell that as well as all that a Case holds, for a small share of the work: what
// explains nothing of them need not be tried on more. What it does not rule out is judged as ever.

#pragma once

#include <optional>

#include "diagnose/hypotheses/diagnosis.h"

namespace tensordiff {

class FirstLook {
 public:
  // Rules nothing out.
  FirstLook() = default;
  // Nor does this where the pair is small, or where these rows do not show its error.
  FirstLook(const Run& run, const Site& site);
  bool rules_out(const Diagnosis& diagnosis) const;

 private:
  bool may_be_another() const;

  std::optional<Case> rows_;
};

}  // namespace tensordiff
