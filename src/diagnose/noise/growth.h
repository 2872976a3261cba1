// How far errors grow at a step, next to the same step in other layers.

#pragma once

#include <map>
#include <optional>

#include "diagnose/site.h"

namespace tensordiff {

// What comes into a step, and what it rounds itself.
double sum_of_errors_in(const Run& run, const Site& site);

// By how much a step makes that grow.
double growth_of(const Run& run, const Site& site);

// The median growth at the steps of each role; of roles that a few layers have.
std::map<Role, double> usual_growth(const Run& run);

// How large what is unrelated to a is in b, next to what is related: 0 is nothing, and factors do
// not count.
double unrelated(std::optional<double> cosine);
double unrelated(const Site& site);

// Whether a step makes far more of what comes in than the same step does in the other layers behind
// the first mistake; not where these are too few to tell.
bool out_of_line(const Run& run, const Site& site);

}  // namespace tensordiff
