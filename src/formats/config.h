// config.json beside a model: what it says becomes metadata of the catalog, never more than text.

#pragma once

#include "formats/format.h"

namespace tensordiff {

// Adds "config.json: hidden_size" and its like, nested keys joined with dots. One that cannot be
// read is said to be so: it is no fault of the model.
void add_config(const ByteSource& json, const Limits& limits, Catalog& catalog);

}  // namespace tensordiff
