// The epsilon of a norm on both sides, from what goes into it and what comes out.
//
// With v the variance of a token of x (its mean square, for an RMSNorm), a norm gives
//
//   y_ti = h_t · w_i · u_ti + β_i,   u = x (less its mean, for a LayerNorm) / √v,   h = √(v / (v +
//   ε)).
//
// h, and w and β, are found by turns from A, each the least-squares answer to the other; B has the
// same w and β, and gives its own h. As w is known up to a factor, 1/h² = k + k·ε / v is a straight
// line over 1/v with an unknown k, the same for both sides.

#pragma once

#include <optional>

#include "diagnose/hypotheses/diagnosis.h"

namespace tensordiff {

// Nothing where a side's epsilon is not known: its input was not dumped, its norm is not that of
// its input, or rounding hides it, so that half of the tokens give another one than the other half.
struct Epsilons {
  std::optional<double> a, b;
};
Epsilons fit_epsilons(const Case& it);

}  // namespace tensordiff
