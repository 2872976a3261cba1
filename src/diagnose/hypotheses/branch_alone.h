// A norm that reads what should have been added to the stream, and not the sum.

#pragma once

#include "diagnose/hypotheses/diagnosis.h"

namespace tensordiff {

// That b normalises a branch alone and a does not; nothing else. A few tokens tell, whatever error
// came in: what b's norm reads is b's own.
std::optional<Explanation> branch_alone(const Case& it);

}  // namespace tensordiff
