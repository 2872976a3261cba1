// How a comparison is shared out: each part gets the same number of bytes to read.
//
// All pairs stand in a row, as long as they cost, and part K of N gets the K-th of N equal lengths
// of it. A pair that lies across a boundary is split there. So every process can tell its own part
// without asking the others, and parts of neighbouring tensors read the same files.

#pragma once

#include <span>
#include <vector>

#include "compare/pieces.h"
#include "parts/part_number.h"
#include "pipeline.h"

namespace tensordiff {

// A pair, and which share of it a part has.
struct Slice {
  std::size_t pair = 0;
  Share share;

  bool operator==(const Slice&) const = default;
};

// What each pair costs: the bytes of both sides, and something for the work on it.
std::vector<uint64_t> costs_of(const Pairing& pairing);

// The slices of one part. Each pair is in all parts together exactly once.
std::vector<Slice> plan_part(std::span<const uint64_t> costs, const PartNumber& number);

}  // namespace tensordiff
