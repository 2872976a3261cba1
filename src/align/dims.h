// What the user says of the axes of both sides: --dims "b s (h d) -> s h d".
//
// Each side names its axes from the first to the last. Brackets hold the axes that one axis merges,
// the slowest first. Axes of the same name belong together; one that only one side names, or is
// called 1, has size 1. `[tp]` after a name says that the ranks of that side hold one piece each of
// that axis; without it, they hold the same.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "align/aligner.h"

namespace tensordiff {

struct NamedAxis {
  std::string name;  // "1" for an axis of size 1 without a name.
  bool sharded = false;
};

// The axes of one side: each a list of those that it merges, nearly always one.
using NamedAxes = std::vector<std::vector<NamedAxis>>;

struct Dims {
  std::string text;  // As the user wrote it.
  NamedAxes a, b;
};

// An error says what is wrong with the text, and where.
Result<Dims> parse_dims(std::string_view text);

// Brings both sides to the axes of a, as the user said. An error says why they do not fit.
Result<AlignedPair> align_named(const Operand& a, const Operand& b, const Dims& dims);

}  // namespace tensordiff
