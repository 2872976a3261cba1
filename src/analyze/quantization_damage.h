// What quantizing each weight is expected to do to the output of its layer, and what it would cost
// to keep the worst ones in more bits.
//
//   error = ‖X Δᵀ‖² / ‖X Wᵀ‖²   with inputs X (--activations); for inputs without preferred
//           directions that is ‖Δ‖² / ‖W‖², which is used where there are none
// A layer adds its output to those of the others, so errors add up: the damage to the model is
// taken as their sum. Each bit more leaves a quarter of the error.

#pragma once

#include <vector>

#include "analyze/quantization.h"

namespace tensordiff {

struct Damage {
  const Quantized* weight = nullptr;
  double error = 0;       // Of the squares.
  bool measured = false;  // On real inputs.
};

// Worst first. Without those that have no known scale or did not change.
std::vector<Damage> damage_of(const Study& study);

// Keeping one weight in more bits than now.
struct Upgrade {
  const Damage* damage = nullptr;
  double from_bits = 0, to_bits = 0;
  double bytes = 0;    // More than before this step.
  double removed = 0;  // Of the sum of all errors.
};

// The steps that remove most damage for each byte first, to 8 and then to 16 bits, as long as they
// fit into `bytes` more. A weight that takes both steps is listed once.
std::vector<Upgrade> plan_upgrades(const std::vector<Damage>& damages, double bytes);

// Bytes of the weights of B, those that were found on a code book as this would be stored.
double quantized_bytes(const Study& study);

}  // namespace tensordiff
