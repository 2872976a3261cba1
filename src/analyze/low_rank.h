// Whether a change is of low rank, as merging a LoRA adapter leaves it.

#pragma once

#include <cstddef>

#include "analyze/linear_algebra.h"

namespace tensordiff {

struct LowRank {
  std::size_t rank = 0;  // 0: it is not of low rank.
  double energy = 0;     // Share of the change that so many directions hold.
  double gap = 0;        // σ² of the last of them over that of the next.
};

// The rank after which the energies fall off a cliff: by at least kCliff from one to the next, with
// at least kEnergy of all before it, in the first half of the spectrum. Noise has no cliff there.
LowRank low_rank_of(const Spectrum& spectrum);

inline constexpr double kLowRankCliff = 10;
inline constexpr double kLowRankEnergy = 0.9;

}  // namespace tensordiff
