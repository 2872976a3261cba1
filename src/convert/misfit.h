// Whether a sample of the values says that a pair was aligned as a converter laid it out.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "align/aligner.h"

namespace tensordiff {

// Σ(b − a)² / Σ(b − mean b)² over a sample: 0 where B is A, about 2 where they are unrelated.
// Unlike a correlation it sees a scale or an offset. Infinity where values cannot be read; not a
// number where B is one value all over, which proves nothing.
double misfit(const AlignedPair& pair);

// The same of values that were read already; and as many positions of a tensor as it looks at.
double misfit(std::span<const double> a, std::span<const double> b);
std::vector<uint64_t> misfit_positions(uint64_t elements);

// The largest misfit that is no accident among so many candidates.
double misfit_max(uint64_t elements, std::size_t candidates);

}  // namespace tensordiff
