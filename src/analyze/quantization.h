// Pairs in which b holds fewer bits than a: found once, for the analyses that ask what it cost.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyze/profile.h"
#include "analyze/quantization_grid.h"

namespace tensordiff {

struct Quantized {
  const Subject* pair = nullptr;
  const Profile* profile = nullptr;
  std::string scheme;          // The dtype of b, or "rounded to a grid" where that is a's.
  double bits = 0;             // Of each weight: of the dtype, or of the levels seen.
  std::optional<double> sqnr;  // dB; nothing where nothing changed.
  bool fitted = false;         // ...after b was scaled to fit, since its scale is elsewhere.
  std::optional<BlockGrid> grid;
};

// Weights that are stored in fewer bits in b, or take far fewer values than in a.
std::vector<Quantized> find_quantized(const Study& study);

// 10 log10(‖a‖² / ‖b − a‖²) over several pairs together; nothing where nothing changed.
std::optional<double> sqnr_of(const std::vector<Quantized>& pairs);

// Different values of b, to those of a: so few count as rounded,
inline constexpr double kFewLevels = 0.25;
// and so few do where they also lie on grids.
inline constexpr double kFewerLevels = 0.9;
inline constexpr uint64_t kFewValues = 1024;  // So few say nothing by how many differ.

}  // namespace tensordiff
