// Pairs in which B holds fewer bits than A: found once, for the analyses that ask what it cost.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyze/profile.h"
#include "analyze/quantization_grid.h"

namespace tensordiff {

struct Quantized {
  const Row* pair = nullptr;
  const Profile* profile = nullptr;
  std::string scheme;  // "int4 (GPTQ, groups of 128)", "int8, a scale for each row", "bf16"
  double bits_a = 0, bits = 0;  // Of each weight as stored, with its scales; by the levels in use
                                // where the dtype has room for more.
  std::optional<double> sqnr;   // dB; nothing where nothing changed.
  bool fitted = false;          // ...after each row of B was scaled to fit: no scale is stored.
  std::optional<Grid> grid;     // Of the values in B.
  RowNoise rows;
};

struct Quantization {
  std::vector<Quantized> found;
  // Weights that changed as much as rounding may change them, and fit no code book that is known.
  std::vector<const Row*> not_told;
};
Quantization find_quantized(const Study& study);

// 10 log10(‖a‖² / ‖b − a‖²) over several pairs together; nothing where nothing changed.
std::optional<double> sqnr_of(const std::vector<Quantized>& pairs);

// Bits of each weight in the file, with the scales that belong to it.
double stored_bits(const Tensor& tensor);

// Rounding a normal distribution to its signs leaves 4.4 dB; less is no rounding. Eight bits in
// blocks of 16 leave 48 dB; 60 is two bits more than anybody stores.
inline constexpr double kRoundedLeast = 4, kRoundedMost = 60;

}  // namespace tensordiff
