// What an error has in common that rounding has not.

#pragma once

#include <string>

#include "diagnose/site.h"

namespace tensordiff {

// Why an error is no noise though it is within a budget: a few elements hold it, or it is one
// factor for each token or one offset for each feature. Empty where it looks like noise.
std::string unlike_noise(const Site& site, const Extent& extent, double budget);

}  // namespace tensordiff
