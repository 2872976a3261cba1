// Which values to show for a finding: a few, where the two sides are farthest apart.

#pragma once

#include <optional>

#include "diagnose/hypotheses/diagnosis.h"

namespace tensordiff {

// The neighbourhood of the largest difference, among the positions that the model speaks of where
// there is one. Nothing for a tensor without elements.
std::optional<EvidenceSlice> evidence_of(const Case& it, const std::optional<Matrix>& model);

}  // namespace tensordiff
