// Products that round coarser than the values of a run: matmuls in TF32 or bf16 inside an f32 run.
//
// Tensor cores round what they multiply and add up in f32, so that values show nothing of it. But
// all products of a run do so, from the first on: a step that is off by such a rounding while
// another product with inputs that agree is exact was cast by itself. Behind a mistake all steps
// are off; there the weights tell what each product leaves of its own inputs.

#pragma once

#include <string_view>

#include "diagnose/site.h"

namespace tensordiff {

// What the product of a step rounds like whose inputs agree, where others of the run do not round
// so: "TF32"; empty where its error is no such rounding.
std::string_view rounds_alone_like(const Run& run, const Site& site);

// The unit roundoff of B's products where the first step that was judged wrong, and all that
// follows, may be no more than that; 0 where they are not.
double coarse_products(const Run& run);

// Whether a step may multiply by weights, as far as is known: no norm, no sum or function of
// earlier steps, and no setting.
bool may_multiply(const Site& site);

// "TF32" or "bf16".
std::string_view name_of_products(double roundoff);

}  // namespace tensordiff
