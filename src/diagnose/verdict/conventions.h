// Layouts that differ at a step and are undone by what reads it: conventions, not mistakes.

#pragma once

#include "diagnose/site.h"

namespace tensordiff {

// What reads a step and undoes its layout where that is only a convention: attention that of its
// inputs, an activation that of gate and up. Null for other steps, whose layout goes on.
const Site* reader_of(const Run& run, const Site& site);

// Whether what reads a step agrees as well as what came before it: an error that is merely small
// enough to be noise would not do.
bool gone_behind(const Run& run, const Site& site);

}  // namespace tensordiff
