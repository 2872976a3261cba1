// Blocks in another order that are the shards of ranks.

#pragma once

#include "report/report.h"

namespace tensordiff {

// A pair that was gathered from ranks, and whose blocks are as many as these and in another order,
// has its ranks in the wrong order: the finding says so, in the same words for every such pair.
void name_rank_orders(Report& report);

// "4 blocks are in the order [0, 2, 1, 3]", of a finding of which blocks are where; else "".
std::string block_order_text(const Finding& finding);

}  // namespace tensordiff
