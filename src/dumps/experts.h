// Which experts each token took, as a set.

#pragma once

#include "tensor/catalog.h"

namespace tensordiff {

// The order in which a router names the experts of a token means nothing. Gives each row of expert
// numbers in rising order, and the weights that belong to them in the same order, so that two dumps
// are compared as sets. Numbers are found by names such as "topk_ids" or "ffn_moe_topk-3", weights
// by names such as "topk_weights" in the same layer.
void order_experts(Catalog& catalog);

}  // namespace tensordiff
