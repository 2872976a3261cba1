// What the diagnoses of norms share.

#pragma once

#include <optional>

#include "diagnose/sample/matrix.h"
#include "diagnose/site.h"

namespace tensordiff {

// By how much the values of b are larger or smaller than those of a, all alike: in nearly every
// token to the same side, and in the features on average far more than their spread explains. It
// is found below the noise of single elements, which has no preferred side; weights that were
// rounded, which push each feature its own way, do not show it. Nothing where there is none.
std::optional<double> shared_shrink(const Matrix& a, const Matrix& b, double roundoff);

}  // namespace tensordiff
