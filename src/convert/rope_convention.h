// The order of the rows of q and k that a format's RoPE needs, as far as the format says.

#pragma once

#include <optional>
#include <string>

#include "convert/form.h"
#include "tensor/catalog.h"

namespace tensordiff {

struct ImpliedRows {
  Rows rows;           // As they are where both formats have one order.
  std::string reason;  // "the names of A are Meta's, whose RoPE turns neighbours; ..."
};

// The rows of q and k that the formats of two models imply. Nothing where they do not say.
std::optional<ImpliedRows> implied_rope_rows(const Catalog& a, const Catalog& b);

// Where q and k have RoPE and the formats do not say in which order: a sentence that tells it.
std::string open_rope_order(const Catalog& a, const Catalog& b);

}  // namespace tensordiff
