// What a's way of computing a step makes of b's own inputs.
//
// Behind a first mistake all inputs differ, so that a says nothing of b any more. Where the dumps
// tell how a computes a step, the same on b's inputs must give b's output: a step for which it does
// carries the error, one for which it does not makes another.

#pragma once

#include <optional>

#include "diagnose/site.h"

namespace tensordiff {

struct Expected {
  // What should have come out, and what did; the first tokens. Empty where that is the same.
  Matrix made, b;
  double left = 0;   // ‖b − made‖ / ‖b‖
  double floor = 0;  // What rounding leaves of it.

  bool met() const { return left <= floor; }
};

// Nothing where a's way is not known: then an error made here cannot be told from one carried.
std::optional<Expected> expected_of(const Run& run, const Site& site);

}  // namespace tensordiff
