// Findings of the calibration corpus, counted: 490, in 32 kinds of models.
// Written by tests/hunt/calibrate.py.

#pragma once

#include "diagnose/hypotheses/confidence.h"

namespace tensordiff::hypotheses {

inline constexpr Counted kCalibration[] = {
    {Basis::given, "attention_scale", true, 8, 8},
    {Basis::given, "block_permutation", true, 13, 13},
    {Basis::given, "cast", true, 6, 6},
    {Basis::given, "norm_epsilon", true, 10, 10},
    {Basis::given, "norm_weight", true, 16, 16},
    {Basis::given, "offset", true, 3, 3},
    {Basis::given, "operator", true, 15, 17},
    {Basis::given, "residual_missing", true, 0, 1},
    {Basis::given, "token_shift", true, 3, 3},
    {Basis::fitted, "norm_epsilon", true, 6, 6},
    {Basis::fitted, "norm_weight", true, 12, 12},
    {Basis::fitted, "operator", true, 26, 26},
    {Basis::fitted, "residual_missing", true, 0, 1},
    {Basis::fitted, "rope_frequency", true, 4, 4},
    {Basis::unknown, "block_permutation", true, 5, 5},
    {Basis::unknown, "operator", true, 2, 3},
    {Basis::transform, "block_permutation", true, 6, 6},
    {Basis::transform, "cast", true, 20, 20},
    {Basis::transform, "norm_weight", true, 2, 2},
    {Basis::transform, "offset", true, 5, 7},
    {Basis::transform, "operator", false, 107, 119},
    {Basis::transform, "region", true, 16, 19},
    {Basis::transform, "row_permutation", true, 1, 1},
    {Basis::transform, "scale", true, 28, 30},
    {Basis::transform, "token_shift", true, 2, 2},
    {Basis::checkpoint, "other_tensor", true, 90, 90},
    {Basis::conversion, "not_transposed", true, 4, 4},
    {Basis::conversion, "offset", true, 10, 10},
    {Basis::conversion, "rope_rows_missing", true, 10, 10},
    {Basis::predictions, "final_norm_missing", true, 1, 1},
    {Basis::predictions, "masked_prompt", true, 2, 2},
    {Basis::predictions, "temperature", true, 17, 17},
    {Basis::predictions, "token_shift", true, 4, 4},
    {Basis::predictions, "vocabulary_padded", true, 10, 10},
    {Basis::predictions, "vocabulary_shifted", true, 2, 2},
};

}  // namespace tensordiff::hypotheses
