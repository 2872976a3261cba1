// From the sums of all pairs of elements to metrics and a status.

#pragma once

#include <functional>

#include "compare/pieces.h"

namespace tensordiff {

Stats stats_from(const Moments& moments);

// Whether the tolerance depends on the values, all of them.
bool tolerance_by_values(const AlignedPair& pair, const CompareOptions& options);

// The tolerance in force, once all is measured.
Tolerance final_tolerance(const AlignedPair& pair, const Sums& sums, const CompareOptions& options);

// Turns sums into metrics. `there` gives both values at a position.
Result<Comparison> finish(const AlignedPair& pair, const CompareOptions& options, Measured measured,
                          const std::function<Result<Spot>(uint64_t)>& there, Beyond& beyond);

}  // namespace tensordiff
