// The order of the rows of q and k that a format's RoPE needs, as far as the format says.

#pragma once

#include <optional>

#include "convert/form.h"
#include "tensor/catalog.h"

namespace tensordiff {

// The rows of q and k that the formats of two models imply: halves on the one side, neighbours on
// the other. Nothing where the formats do not say, or agree.
std::optional<Rows> implied_rope_rows(const Catalog& a, const Catalog& b);

}  // namespace tensordiff
