// Tells whether two processes look at the same comparison.

#pragma once

#include <span>
#include <string>

#include "parts/partial.h"
#include "pipeline.h"

namespace tensordiff {

// 32 bytes made of the version, the options, the names, types and shapes of all tensors, how they
// are paired, and a few elements of some. Paths are no part of it: nodes may mount the same files
// at different places.
std::string fingerprint_of(const Pairing& pairing, std::span<const GivenOption> options);

}  // namespace tensordiff
