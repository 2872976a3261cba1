// T(A) of a finding: A with the change that the finding names, as a view that is computed when it
// is read. "B = 0.125 × A" makes 0.125 × A, so that what is left of the difference can be seen.
//
// A finding gives a transform and most of its numbers; the rest (which axis the tokens are, a
// vector of offsets) is fitted. A sample of the values then has to confirm the result, so a
// transform that does not bring A nearer to B is never shown.

#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "align/aligner.h"
#include "diagnose/finding.h"

namespace tensordiff::serve {

// A tensor of A by its name, for findings that speak of another one; nothing where there is none.
using FindTensor = std::function<std::optional<View>(std::string_view name)>;

// In the shape of the pair. Nothing where the finding names no transform of A's values, or where
// that does not take away at least half of the difference.
std::optional<View> applied(const Finding& finding, const AlignedPair& pair,
                            const FindTensor& find);

}  // namespace tensordiff::serve
