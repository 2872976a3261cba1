// A few values instead of all: how matching and alignment ask whether two tensors belong together
// without reading them whole.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/reader.h"

namespace tensordiff {

// Up to `wanted` positions below `count`, ascending: all of them where there are no more, else
// scattered without a period that an axis could share. The same arguments give the same positions.
std::vector<uint64_t> sample_positions(uint64_t count, std::size_t wanted);

std::vector<double> values_at(const Reader& reader, std::span<const uint64_t> positions);

// How much of y a straight line through x leaves unexplained, from 0 (none) to 1 (all): one minus
// the squared correlation. Blind to scale, sign and offset, so that a tensor with such a mistake is
// still known for what it is. Positions where either value is not finite do not count; where fewer
// than three are left, values say nothing and the answer is 1.
double unexplained(std::span<const double> x, std::span<const double> y);

}  // namespace tensordiff
