// Which rows of a Report to show, and in which order.

#pragma once

#include <vector>

#include "report/renderer.h"

namespace tensordiff {

// The pairs that `options` asks for, where it does not say with `fallback` as their order. What
// differs most comes first, or what is least similar (of one input alone: most), or what is
// largest; ties keep display order. Does not cut at options.top: the caller says how many it left
// out.
std::vector<const PairRow*> select_pairs(const Report& report, const RenderOptions& options,
                                         Sort fallback);

// One input, each of its tensors with each other: there one looks for what is alike, and not for
// what is not.
bool is_alone(const Report& report);

// How far apart a pair is as one number, for sorting: the relative L2 error, and infinity where
// values are missing on one side or there is nothing to compare.
double change_magnitude(const PairRow& row);

// Of weights, which no step makes, the pair that differs most: none of them comes first. Null where
// none differs.
const PairRow* largest_change(const Report& report);

}  // namespace tensordiff
