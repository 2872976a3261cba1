// Activation functions, replayed in float64 from the dumped input.
//
// Machines compute tanh and exp with an error far above one rounding, so the size of an error does
// not tell another function from another machine. Which known function fits each side best does.

#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "diagnose/site.h"

namespace tensordiff {

struct ActivationFunction {
  std::string_view name;
  double (*value)(double x);
};
std::span<const ActivationFunction> activation_functions();

// What goes into an activation; null where it was not dumped.
const Site* activation_input(const Run& run, const Site& site);

// What a function may leave of an output that it made: in f32 what machines leave of tanh, in
// narrower types their roundings.
double activation_limit(const Site& site);

// The function that makes this side's output of its input; null where none is known to.
const ActivationFunction* function_of(const Run& run, const Site& site, View AlignedPair::*side);

struct ActivationStep {
  std::string_view of_a, of_b;  // The names of the functions that fit the two sides best.
  bool same = true;             // b's output is as well explained by a's function as by any.
};

// Nothing where the site is no activation, its input is not there, or no known function fits.
std::optional<ActivationStep> learn_activation(const Run& run, const Site& site);

}  // namespace tensordiff
