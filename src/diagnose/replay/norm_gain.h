// The weight and the bias of a norm, where they are given (--weights).

#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "diagnose/site.h"

namespace tensordiff {

struct NormGain {
  std::vector<double> weight, bias;
};

// As they are stored; without a bias there is none. Nothing where the weight is not known.
std::optional<NormGain> stored_gain(const Run& run, const Site& norm);

// What a norm multiplies by, for a stored weight.
struct GainWay {
  std::string_view text;
  double (*weight)(double);
};
std::span<const GainWay> ways_of_models();    // As it is, or what 1 is added to.
std::span<const GainWay> ways_of_mistakes();  // These, none at all, and twice.
NormGain in_way(NormGain stored, const GainWay& way);

// What a norm has normalised, before its weight and bias; and with them.
Matrix without_gain(Matrix out, const NormGain& gain);
Matrix with_gain(Matrix unit, const NormGain& gain);

}  // namespace tensordiff
