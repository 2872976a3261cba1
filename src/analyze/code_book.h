// The values that quantization leaves: levels of a code book, times the scale that a group of
// values shares.
//
// A group fits a book where one scale puts each of its values on a level, up to the rounding of the
// dtype that it is stored in. How much that proves is counted in bits: a value that could only be
// on a level by a chance of 1 in 8 proves 3 bits. So storage in bfloat16 weakens the evidence of
// single values instead of hiding the grid, and zeros prove nothing.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace tensordiff {

struct CodeBook {
  std::string_view name;         // "nf4"; "int" and "int with offset" for equal steps.
  int bits = 0;                  // 0: by the levels in use, for equal steps.
  std::vector<double> levels{};  // Ascending; empty for equal steps.
  bool offset = false;           // Of equal steps: whether the group has an offset of its own.

  bool symmetric() const;  // Of levels: each has its negative.
};

// Equal steps with and without an offset, NF4, FP4, MXFP4's e2m1, iq4_nl, and the 8-bit floats.
const std::vector<CodeBook>& code_books();

// How exactly a dtype stores values: relative to each, and at least.
struct Precision {
  double relative = 0, least = 0;
};
Precision precision_of(DType dtype);

inline constexpr uint64_t kUniformLevelsMax = 256;  // Eight bits.

struct Fit {
  double scale = 0;     // Of one step, or of the level 1 of a book.
  uint64_t levels = 0;  // From the least to the largest in use; twice the largest where symmetric.
  double bits_of_evidence = 0;  // After the price of all scales that were tried.
  double values = 0;            // That it comes from: those that are not zero.
};

// The coarsest scale at which all values are on levels of the book; nothing where there is none.
std::optional<Fit> fit(std::span<const double> values, const Precision& precision,
                       const CodeBook& book);

// The evidence that a fit of eight bits would give, in bits: what is about 0 cannot be told.
double evidence_possible(std::span<const double> values, const Precision& precision);

}  // namespace tensordiff
