// Findings for pairs that do not follow the conversion of their kind.

#pragma once

#include <span>
#include <vector>

#include "compare/comparison.h"
#include "convert/conversion.h"
#include "diagnose/finding.h"

namespace tensordiff {

// One finding for each exception of the conversion whose own form explains it. `errors` has the
// relative error of each pair as it was compared, where it is known.
std::vector<Finding> explain_exceptions(const Conversion& conversion,
                                        const std::vector<Pair>& pairs, const OperandsOf& operands,
                                        std::span<const std::optional<double>> errors);

// A table of which one side has so many rows before all those of the other.
Finding shift_finding(std::size_t pair, char side, uint64_t rows, std::optional<double> error);

}  // namespace tensordiff
