// What a kernel sees and what it gives: one tile of two tensors, and its sums.
//
// A tile is at most kTileElements pairs of values, small enough to stay in the first-level cache
// while it is decoded, checked for equality and measured. Tiles merge into blocks of kBlockElements
// and blocks into the tensor, always in index order, so that a result never depends on threads.
//
// Each kernel exists twice: a plain one (reference.cpp) that takes any values, and a vector one
// (vector.cpp) that declines tiles with values that are not finite or too large for its shortcuts.
//
// Moments are sums about a pivot near the values (x = a - pivot_a), so that 1000 ± 0.01 keeps all
// its digits; they merge as means and centred sums, never as E[x²] - E[x]².

#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace tensordiff {

inline constexpr std::size_t kTileElements = 2048;
inline constexpr std::size_t kBlockElements = 65536;
inline constexpr uint64_t kStepsUnknown = UINT64_MAX;

struct Threshold {
  double atol = 0;
  double rtol = 0;
};

// Mean, sum of squared deviations and extremes of finite values.
struct Moments {
  uint64_t count = 0;
  double mean = 0;
  double m2 = 0;
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();
  uint64_t zeros = 0;
  uint64_t nan = 0;
  uint64_t inf = 0;

  void merge(const Moments& other);
};

// Everything about a range of pairs. Sums run over the pairs in which both values are finite.
struct Sums {
  Moments a, b;         // Of all finite values of each side,
  uint64_t count = 0;   // and from here on of the pairs.
  uint64_t values = 0;  // Numbers on each side: the count, or twice that for complex pairs.
  double mean_a = 0, mean_b = 0;
  double m2_a = 0, m2_b = 0;
  double co = 0;  // Sum of (a - mean_a)(b - mean_b).
  double d_abs = 0;
  double d_squared = 0;
  double d_relative = 0;  // Sum of |d| / (|a| + 1e-8).
  uint64_t equal = 0;
  uint64_t exceeding = 0;
  uint64_t mismatch = 0;              // One side is not finite, or both are but not the same.
  uint64_t agreeing = 0;              // The same infinity, or NaN with NaN.
  uint64_t mismatch_at = UINT64_MAX;  // The position of the first of each; UINT64_MAX: none.
  uint64_t agreeing_at = UINT64_MAX;
  double max_abs = -1;  // -1: no pair yet.
  uint64_t max_abs_at = 0;
  double max_rel = 0;
  double rtol_needed = 0;  // Infinite when no rtol would do.
  uint64_t ulp = 0;

  // Adds a later range. Where both have the same maximum, the smaller position stays.
  void merge(const Sums& later);
};

namespace kernels {

// The largest seen so far in the same block.
struct Best {
  double max_abs = -1;
  double max_rel = 0;
  double rtol_needed = 0;
};

// Where the stored elements of the next tile lie, to be fetched while this one is computed. A hint:
// it is never read, and may point anywhere.
struct Ahead {
  const std::byte* a = nullptr;
  const std::byte* b = nullptr;
  std::size_t item_a = 0;  // Bytes of an element.
  std::size_t item_b = 0;
};

// What to measure: `count` pairs, the first of which is at position `first`. A vector kernel may
// leave out a maximum that does not beat `best`; merged into what gave `best` nothing is missing.
struct Tile {
  std::size_t count = 0;
  uint64_t first = 0;
  Threshold limit;
  Best best;
  Ahead ahead;
  bool narrow = false;   // No value on either side has more than 11 significant bits.
  bool crowded = false;  // Many elements will exceed tolerance. Results do not depend on it.
};

// A tile of f16 or bf16 as stored, and where it is to be left as floats, all of it.
struct Words {
  const uint16_t* a = nullptr;
  const uint16_t* b = nullptr;
  bool bf16 = false;
  float* to_a = nullptr;
  float* to_b = nullptr;
};

namespace reference {
Sums diff(const double* a, const double* b, const Tile& tile);
Sums diff(const long double* a, const long double* b, const Tile& tile);
Sums diff_complex(const double* a, const double* b, const Tile& tile);  // Pairs of parts.
Moments moments(const double* values, std::size_t count);
uint64_t ulp(const float* a, const float* b, std::size_t count);
uint64_t ulp(const double* a, const double* b, std::size_t count);
uint64_t ulp16(const uint16_t* a, const uint16_t* b, std::size_t count);
uint64_t ulp8(const uint8_t* a, const uint8_t* b, std::size_t count);
}  // namespace reference

// The vector twins. They return how many elements from the front they measured: all whole vectors,
// or none when they decline. The plain kernels do the rest. diff counts the steps of the type that
// it is given where that costs nothing; else out.ulp is kStepsUnknown.
std::size_t diff(const float* a, const float* b, const Tile& tile, Sums& out);
std::size_t diff(const double* a, const double* b, const Tile& tile, Sums& out);
std::size_t diff(const Words& words, const Tile& tile, Sums& out);
std::size_t moments(const float* values, std::size_t count, Moments& out);
std::size_t moments(const double* values, std::size_t count, Moments& out);
// The moments of a, unless b has other bits: then none.
std::size_t moments_if_same(const float* a, const float* b, std::size_t count, Moments& out);
std::size_t moments_if_same(const double* a, const double* b, std::size_t count, Moments& out);

// The largest distance in representable steps; for finite values only. Those of 16 and 8 bits take
// floats as stored, with a sign in the highest bit.
uint64_t ulp(const float* a, const float* b, std::size_t count);
uint64_t ulp(const double* a, const double* b, std::size_t count);
uint64_t ulp16(const uint16_t* a, const uint16_t* b, std::size_t count);
uint64_t ulp8(const uint8_t* a, const uint8_t* b, std::size_t count);

// The name of the instruction set in use.
const char* target_name();

}  // namespace kernels
}  // namespace tensordiff
