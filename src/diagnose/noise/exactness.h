// Runs that agree to the last bits, and steps whose neighbours do: there less than the usual noise
// is a mistake.

#pragma once

#include <algorithm>
#include <string>

#include "diagnose/site.h"

namespace tensordiff {

// How well the steps agree that no mistake goes into.
struct Exactness {
  double roundoffs = 0;   // The largest error, in unit roundoffs.
  std::size_t steps = 0;  // That were compared.

  void add(double error_in_roundoffs) {
    roundoffs = std::max(roundoffs, error_in_roundoffs);
    ++steps;
  }
};

// Why a step is off where all before it agrees to the last bits, or where others that read the same
// are not; empty where it is as it should be.
std::string inexact_reason(const Run& run, const Site& site, const Exactness& before);

}  // namespace tensordiff
