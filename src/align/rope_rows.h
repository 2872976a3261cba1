// The rows of q and k where two files keep them for different forms of RoPE.
//
// RoPE turns pairs of features: neighbours in one form, i and i + d/2 of each head in the other.
// Converters to GGUF reorder the rows of these two weights from halves to pairs, so that the same
// model lies differently in both files. This is the one order inside an axis that is undone, only
// where the files are known for it and the values show it, and it is said.

#pragma once

#include <optional>

#include "align/aligner.h"

namespace tensordiff {

// The pair in one order; nothing where it fits as it is, or in no order of this kind.
std::optional<AlignedPair> with_rope_rows(const AlignedPair& pair);

}  // namespace tensordiff
