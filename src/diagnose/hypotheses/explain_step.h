// The cause of a step that made an error, by what it computes: its operator, and the change of it
// that B makes.

#pragma once

#include <optional>

#include "diagnose/graph/lone.h"
#include "diagnose/verdict/explain.h"

namespace tensordiff {

// Fills in the finding where a change explains B down to the noise.
void explain_step(const Run& run, const DiagnoseOptions& options, const LoneTensors& lone,
                  const Site& site, Told& told);

// A step whose inputs differ already: told only where B's output is not what A's operator makes of
// B's own inputs, as far as that is known.
Told explain_behind(const Run& run, const DiagnoseOptions& options, const LoneTensors& lone,
                    const Site& site);

// The same of a step of which nothing is known, but that its inputs agree.
void explain_output(const Run& run, const DiagnoseOptions& options, const LoneTensors& lone,
                    const Site& site, Told& told);

}  // namespace tensordiff
