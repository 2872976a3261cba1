// What can be said of a pair without reading an element: by its shapes, or by the hashes that the
// servers of remote files give.

#pragma once

#include "compare/comparison.h"
#include "report/report.h"

namespace tensordiff {

// --shape-only
void compare_shapes(const Tensor& a, const Tensor& b, PairRow& row);

// Whether both sides are the same place of remote files with one hash; the row says so then.
bool compare_hashes(const AlignedPair& pair, const CompareOptions& options, PairRow& row);

// Says how many pairs were told by hashes: the word of a server, which the user may doubt.
void note_hashes(Report& report);

}  // namespace tensordiff
