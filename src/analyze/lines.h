// Rows and columns that one side of a matrix does not have: set to zero, removed so that it became
// smaller, or added. Heads of attention are runs of such lines.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/study.h"

namespace tensordiff {

enum class Axis { rows, columns };

// Lines of B that are zero all over and were not in A, ascending.
std::vector<uint64_t> zeroed_lines(const AlignedPair& views, Axis axis);

// A matrix whose sides differ in the number of rows or of columns, and whose smaller side is the
// larger one without some of its lines.
struct Resizing {
  Axis axis = Axis::rows;
  uint64_t before = 0, after = 0;
  std::vector<uint64_t> lines;  // Of the larger side, those that the smaller one does not have.
};
// Nothing where the lines that are left are not those of the other side, in their order.
std::optional<Resizing> find_resizing(const Study& study, const Row& pair);

// Weights of two axes whose sides differ in the size of one of them, compared in part or not.
std::vector<const Row*> resized_pairs(const Study& study);

// "heads 2, 5 of 8" where the lines are whole heads of an attention projection of A; else
// "rows 3-5, 17 of 256", or how many where that would be long.
std::string lines_text(const Study& study, const Row& pair, Axis axis,
                       const std::vector<uint64_t>& lines, uint64_t of);

}  // namespace tensordiff
