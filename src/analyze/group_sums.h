// Sums of squares over groups of elements of a pair: its rows, its heads, its columns in blocks.
//
// Element p belongs to group (p / run) mod groups. With run = columns and groups = rows these are
// the rows; with run = head size and groups = heads they are the heads of a matrix that has them
// side by side in each row. One pass over both sides, in chunks that do not depend on threads.

#pragma once

#include <optional>
#include <vector>

#include "align/aligner.h"
#include "base/result.h"

namespace tensordiff {

// Over the elements that are finite on both sides.
struct GroupSum {
  double aa = 0, bb = 0, dd = 0, ab = 0;

  void add(const GroupSum& other);
  // ‖b − a‖ / ‖a‖; nothing where a is zero.
  std::optional<double> relative() const;
};

// More groups than this are not held: 32 MB.
inline constexpr uint64_t kGroupsMax = uint64_t{1} << 20;

struct Grouping {
  uint64_t run = 1;
  uint64_t groups = 1;  // At most kGroupsMax.
};

Result<std::vector<GroupSum>> group_sums(const AlignedPair& pair, const Grouping& grouping);

// A view as rows and columns: the first axis, and all others. A vector is one row.
struct Extents {
  uint64_t rows = 1, columns = 1;
};
Extents extents_of(const Shape& shape);

}  // namespace tensordiff
