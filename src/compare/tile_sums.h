// One tile of a pair: from stored elements to sums.

#pragma once

#include "compare/kernels/tile.h"
#include "tensor/dtype.h"

namespace tensordiff {

// How a pair of types is compared.
enum class Arithmetic {
  f32,      // Both fit a float exactly.
  f64,      // Both fit a double exactly.
  exact64,  // A 64-bit integer is among them: no double holds it.
  complex,
};
Arithmetic arithmetic_for(DType a, DType b);

// A tile as stored.
struct RawTile {
  const std::byte* a;
  const std::byte* b;
  DType dtype_a;
  DType dtype_b;
  kernels::Tile tile;

  std::size_t count() const { return tile.count; }
};

Sums measure_tile(Arithmetic arithmetic, const RawTile& raw);

// |b - a| of each pair, as the kernels take it.
void distances(Arithmetic arithmetic, const RawTile& raw, double* apart);

// The moments of a tile of one tensor.
Moments measure_elements(DType dtype, const std::byte* elements, std::size_t count);

}  // namespace tensordiff
