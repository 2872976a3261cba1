// What the values of two aligned views say about whether they were aligned right.

#pragma once

#include <optional>
#include <span>
#include <vector>

#include "align/aligner.h"

namespace tensordiff {

// The sampled values of a view, in the order of their positions; nothing where it cannot be read.
std::optional<std::vector<double>> sample_of(const View& view);

// Whether two samples are the same, NaN included.
bool equal_samples(std::span<const double> a, std::span<const double> b);

// How much of b a sample of a leaves unexplained, from 0 to 1; 1 where it cannot be read.
double sampled_disagreement(const AlignedPair& pair);

// Whether the sampled values are the same.
bool samples_equal(const AlignedPair& pair);

// The most that may stay unexplained, given the elements there are and the plans there are to
// choose from, for agreement to be no accident.
double disagreement_max(uint64_t elements, std::size_t plans);

// Whether both hold the same values everywhere, and not just one value, which would prove nothing.
bool hold_same_values(const AlignedPair& pair);

}  // namespace tensordiff
