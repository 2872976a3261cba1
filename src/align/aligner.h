// Brings a pair of tensors to one logical shape, without touching an element.
//
// An aligner proposes ways to view a and b alike; candidates are tried from the simplest on, and
// where more than one fits the shapes, the values decide. Alignment undoes layout, never mistakes:
// it moves, merges and splits axes, and never reorders elements inside one. Shapes that already
// agree are compared as they are.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tensor/tensor.h"

namespace tensordiff {

// One thing that was done to one side, as the report lists it:
// {"side":"a","op":"squeeze","axis":0}.
struct Step {
  char side = 'a';
  std::string_view op;             // squeeze, permute, split, truncate
  std::vector<uint64_t> argument;  // The axis; the order of the axes; the sizes it is split into.
};

struct AlignedPair {
  View a;
  View b;  // Both of one shape from here on; no later stage looks at how they came to it.
  std::vector<Step> steps;
  std::string note;  // What the reader should know: "layout not confirmed by values".
};

struct AlignOptions {
  bool enabled = true;  // --align none: only equal shapes are compared.
};

struct Aligner {
  std::string_view name;
  std::string_view summary;
  // All the ways this aligner knows to give both one shape, simplest first.
  std::vector<AlignedPair> (*propose)(const View& a, const View& b);
};

namespace aligners {

extern const Aligner same_shape;
extern const Aligner unit_axes;
extern const Aligner permuted;
extern const Aligner merged;
extern const Aligner truncated;

// From the simplest to the boldest.
inline constexpr const Aligner* kAll[] = {&same_shape, &unit_axes, &merged, &permuted, &truncated};

}  // namespace aligners

// An error says that no common layout was found, with both shapes.
Result<AlignedPair> align(const View& a, const View& b, const AlignOptions& options = {});

}  // namespace tensordiff
