// Which row of A each row of B is, told by a few values of each row.

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "align/aligner.h"

namespace tensordiff {

// For each row of b (all axes but the last), the row of a that has its values. Nothing where they
// are all where they were, or where a row of b is none of a. Reads a few values of each row, and
// takes about rows · log(rows).
std::optional<std::vector<uint64_t>> order_of_rows(const AlignedPair& pair);

}  // namespace tensordiff
