// Whether a change is of low rank, as merging a LoRA adapter leaves it.

#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>

#include "analyze/group_sums.h"
#include "analyze/linear_algebra.h"
#include "analyze/study.h"

namespace tensordiff {

struct LowRank {
  std::size_t rank = 0;  // 0: it is not of low rank.
  double energy = 0;     // Share of the change that so many directions hold.
  double gap = 0;        // σ² of the last of them over that of the next.
};

// The rank after which the energies fall off a cliff: by at least kCliff from one to the next, with
// at least kEnergy of all before it, in the first half of the spectrum. Noise has no cliff there.
LowRank low_rank_of(const Spectrum& spectrum);

// How many directions a matrix has at least, for what a sample of its rows and columns tells of the
// fourth powers of its singular values. With P = (Σσ²)² / Σσ⁴, r directions that hold a share q of
// Σσ² need q² P ≤ r (Cauchy and Schwarz). This is P of the whole matrix, lowered by four standard
// errors; 0: the sample does not tell.
double directions_of(const Scaled& sample, const Extents& whole);

// The share of a change that a low rank holds at least: all of it but for what rounding may leave.
// Not above 0: rounding may be all of it.
double low_rank_share(const Row& pair);

// A sample of twice as many rows and columns tells ranks up to this.
inline constexpr std::size_t kUpdateRankMax = 160;

// Ranks above what the sample of a profile can tell, by a larger one. One matrix of each kind is
// looked at and the others of its kind follow: adapters have one rank for all layers.
class HigherRanks {
 public:
  // 0: more than kUpdateRankMax, not low at all, or not looked at.
  std::size_t of(const Row& pair, const Profile& profile);

 private:
  std::unordered_map<std::string, std::size_t> by_kind_;
};

inline constexpr double kLowRankCliff = 10;
inline constexpr double kLowRankEnergy = 0.9;

}  // namespace tensordiff
