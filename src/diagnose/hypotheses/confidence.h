// How often findings of a kind are right, as measured. No rule has an opinion of its own on that.

#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "diagnose/finding.h"

namespace tensordiff::hypotheses {

// What a finding stands on.
enum class Basis {
  given,        // An operator whose parameters were given.
  fitted,       // An operator that was fitted to A.
  unknown,      // A's output, where nothing is known of the step.
  transform,    // A transform of A's output, or a step computed again by its role.
  checkpoint,   // Two weights.
  conversion,   // How the other tensors of its kind were converted.
  predictions,  // What two runs predict.
};

// Findings of the calibration corpus that are of one class, and how many of them were right.
struct Counted {
  Basis basis;
  std::string_view code;
  bool named;  // Says what is wrong, and not only where.
  unsigned right, all;
};

// (k + 1) / (n + 2) of the findings of this basis, code and completeness in the corpus; where there
// are fewer than 30, of this basis and completeness; then of this completeness.
double confidence_of(const Finding& finding, Basis basis, std::span<const Counted> corpus);
double confidence_of(const Finding& finding, Basis basis);

// Of a step of a dump: the basis is its standing.
Basis basis_of(const Finding& finding);

// All findings of a comparison of dumps, or of checkpoints.
void rate(std::vector<Finding>& findings, bool activations);

}  // namespace tensordiff::hypotheses
