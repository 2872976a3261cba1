// The two views of one pair as they are compared: what the matcher paired, in one layout.

#pragma once

#include <memory>

#include "align/dims.h"
#include "convert/conversion.h"
#include "convert/merge.h"
#include "layout/peer_layouts.h"

namespace tensordiff {

// What the user says about the axes of some pairs: --dims.
struct DimsOf {
  std::string names;  // Pairs whose name in A starts so; `*` globs allowed; empty: all pairs.
  Dims dims;
  bool whole = false;  // Only the one pair whose name in A is exactly `names`.
};

struct LayoutOptions {
  AlignOptions align;
  std::vector<DimsOf> dims;  // The last one that names a pair replaces what would be inferred.
  bool read_values = true;   // False where only shapes are compared.
};

// Both sides, with what all pairs together tell of their ranks.
struct Sides {
  const Catalog& a;
  const Catalog& b;
  const Matching& matching;
  LayoutOptions options;
  // Whether some tensor lies in pieces on all ranks: no rank repeats another one then, but that
  // neighbours may share the heads of keys and values that are too few for them.
  bool all_ranks = false;
  std::shared_ptr<PeerLayouts> peers;
  const Conversion* conversion = nullptr;  // Of the pairs of this matching; may be none.
  const Merges* merges = nullptr;          // What tensors could be merged with; may be none.
};

// What both sides of a pair hold, as it is stored.
PairOperands operands_of(const Sides& sides, const Pair& which);

// Reads values of some pairs, where the options allow it. Catalogs and matching outlive it.
Sides sides_of(const Catalog& a, const Catalog& b, const Matching& matching, LayoutOptions options);

// How the pairs of two checkpoints were converted; nothing for dumps, or where nothing may be read.
std::shared_ptr<const Conversion> conversion_of(const Sides& sides);

// Rows that one side has before all those of the other: a table that was padded in front.
struct Shifted {
  char side = 'a';
  uint64_t rows = 0;
};
std::optional<Shifted> shifted_rows(const Sides& sides, const Pair& which);

// `which` is a pair of the sides' matching.
Result<AlignedPair> aligned_views(const Sides& sides, const Pair& which);

}  // namespace tensordiff
