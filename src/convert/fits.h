// The forms that the values of one pair allow.

#pragma once

#include <vector>

#include "convert/conversion.h"

namespace tensordiff {

struct Fits {
  std::vector<Form> forms;  // The simplest first; empty where none fits.
  bool tells = false;       // Its values are not all one.
  bool square = false;      // A matrix that fits its partner as it is and transposed.
  Merge merge = {};         // What one side could be merged with, whether it fits or not.
};

Fits fits_of(const PairOperands& operands, const Tensor& a, const Tensor& b);

}  // namespace tensordiff
