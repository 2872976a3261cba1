// The process that runs the HDF5 library; see base/sandbox.h. It lists the datasets of one file and
// says where their bytes lie.

#pragma once

#include "base/sandbox.h"

namespace tensordiff::hdf5 {

// All that the process does, after main() has seen that it is one. Gives its exit status.
int list_datasets(const SandboxLimits& limits);

}  // namespace tensordiff::hdf5
