// How often findings of a kind are right, as measured.

#pragma once

#include "diagnose/operators/operator.h"

namespace tensordiff::hypotheses {

// (k + 1) / (n + 2) of the findings of the calibration corpus of this standing and family, or of
// the standing alone where those are fewer than 30.
double confidence_of(operators::Standing standing, operators::Family family);

}  // namespace tensordiff::hypotheses
