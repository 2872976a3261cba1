// Differences that are far beyond rounding and no mistake.

#pragma once

#include "diagnose/site.h"

namespace tensordiff {

// Takes the reason from a site that only rounding near a tie, or another way to cut the same steps,
// made different; a note says so.
void forgive_harmless(const Run& run, Site& site);

}  // namespace tensordiff
