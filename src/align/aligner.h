// Brings a pair of tensors to one logical shape, without touching an element.
//
// An aligner proposes plans: steps for either side that end in one shape. Plans are made from
// shapes alone and tried from the simplest on; where more than one fits, the values decide.
// Alignment undoes layout, never mistakes: it moves, merges and splits axes, and never reorders
// elements inside one. Shapes that already agree are compared as they are.
//
// To add one: write align/<name>.cpp and add it to the list below.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "align/layout_note.h"
#include "base/result.h"
#include "tensor/tensor.h"

namespace tensordiff {

// What is done to the axes of one side.
enum class Op : uint8_t {
  squeeze,   // {axis}, which has size 1, is dropped.
  permute,   // {order}: new axis i is old order[i].
  split,     // {axis, sizes...}: one axis as several.
  truncate,  // {axis, size}: only its first entries.
  select,    // {axis, first, size}: only these.
  flatten,   // {}: all axes as one.
  // How a side that lies in pieces on several ranks was put together, before all other steps.
  replica,       // {ranks}: all hold the same.
  sum,           // {ranks}: they add up.
  concat,        // {axis, ranks, copies}: one after the other; each on so many neighbouring ranks.
  concat_parts,  // {axis, ranks, parts...}: each rank has several parts, put together one by one.
};
inline constexpr std::size_t kOps = 10;

// One thing that was done to one side, as the report lists it:
// {"side":"a","op":"squeeze","axis":0}. Axes are numbered as they are when the step is taken.
struct Step {
  char side = 'a';
  Op op = Op::squeeze;
  std::vector<uint64_t> argument;  // What stands in braces at the Op.

  bool operator==(const Step&) const = default;
};

using Plan = std::vector<Step>;

// A rank that should hold the same as another one.
struct Copy {
  char side = 'a';
  std::size_t rank = 0;
  std::size_t like = 0;
  View view;
  View like_view;
};

struct AlignedPair {
  View a;
  View b;  // Both of one shape from here on; no later stage looks at how they came to it.
  std::vector<Step> steps;
  LayoutNotes notes = {};
  std::vector<Copy> copies = {};  // What has to be compared with each other, too.
};

// What the names and the other tensors of a side tell of how its ranks share a tensor.
struct RankFacts {
  bool all = false;     // Each rank has its piece along one axis; but for neighbours, none repeats.
  bool is_one = false;  // It is one tensor and not several, [q|k|v] or [gate|up], on each rank.
};

// A tensor, or a section of one, as it is stored: on one rank or in pieces on several.
struct Operand {
  std::vector<View> shards;
  std::optional<Section> section = std::nullopt;
  RankFacts facts = {};
};

struct AlignOptions {
  bool enabled = true;  // --align none: only equal shapes are compared.
  // How a pair of the same run was brought to one layout: taken where it can be, whatever the
  // values say. Sizes may differ.
  std::optional<Plan> like = std::nullopt;
};

// What must speak for a plan before it is taken.
enum class Evidence {
  none,     // The order of the elements stays, so it is right unless the values prefer another.
  values,   // It is a guess that a sample of the values has to confirm, if any plan is confirmed.
  support,  // It is too bold to be shown unless a sample of the values confirms it.
  exact,    // Elements are left out, so every one of those that stay has to be the same.
};

struct Aligner {
  std::string_view name;
  std::string_view summary;
  Evidence evidence;
  // All the ways this aligner knows to give both one shape, simplest first.
  std::vector<Plan> (*propose)(const Shape& a, const Shape& b);
};

namespace aligners {

extern const Aligner same_shape;
extern const Aligner unit_axes;
extern const Aligner merged;
extern const Aligner permuted;
extern const Aligner stacked;
extern const Aligner truncated;
extern const Aligner flattened;

// From the simplest to the boldest.
inline constexpr const Aligner* kAll[] = {&same_shape, &unit_axes, &merged,   &permuted,
                                          &stacked,    &truncated, &flattened};

}  // namespace aligners

// An error says that no common layout was found, with both shapes.
Result<AlignedPair> align(const Operand& a, const Operand& b, const AlignOptions& options = {});
inline Result<AlignedPair> align(const View& a, const View& b, const AlignOptions& options = {}) {
  return align(Operand{{a}}, Operand{{b}}, options);
}

}  // namespace tensordiff
