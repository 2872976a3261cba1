// What the layouts of all pairs together must say, so that agreement of a part does not pass for
// agreement of all.

#pragma once

#include "report/report.h"

namespace tensordiff {

// Adds a note where rows of q and k were reordered for RoPE, and where pairs that agree were
// compared in part only, or with their axes in another order though their shapes fit as they are.
void note_layouts(Report& report);

}  // namespace tensordiff
