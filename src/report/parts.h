// What was left out of a comparison, so that agreement of a part does not pass for all of it.

#pragma once

#include "report/report.h"

namespace tensordiff {

// Adds a note where pairs that agree were compared in part only, or with their axes in another
// order though their shapes fit as they are.
void note_parts(Report& report);

}  // namespace tensordiff
