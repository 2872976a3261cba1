// What the inferred conversion of two checkpoints adds to a report.

#pragma once

#include <map>
#include <string>
#include <vector>

#include "layout/pair_views.h"
#include "report/report.h"

namespace tensordiff {

// Notes how one checkpoint was made of the other, and adds a finding for each pair that does not
// follow it, in place of any other cause: a pair that leaves out a step needs no other one.
// Says of unpaired tensors that the other side has them merged into others. The length of a normed
// weight is no tensor of its own then; norms and updates are, which the other side lacks.
void list_merged(const Sides& sides, Report& report);

void report_conversion(const Sides& sides, Report& report);

// What a pair was merged from, by name; "" for a part that is not there (convert/merge.h).
struct MergedFrom {
  std::vector<std::string> names;
  uint64_t axis = 0;
  double number = 0;
  bool turned = false, is_bias = false;
};
using MergedPairs = std::map<std::size_t, MergedFrom>;  // By index of the pair.

MergedPairs merged_pairs(const Sides& sides);

}  // namespace tensordiff
