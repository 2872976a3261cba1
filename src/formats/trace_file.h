// trace.json, which tensordiff.capture() of the Python package writes beside the tensors of a run:
// every call in the order of its end, with its results. docs/python/capture.md has the schema.

#pragma once

#include <string>
#include <vector>

#include "formats/format.h"

namespace tensordiff {

// Puts the tensors of a captured folder in the order in which they were computed, and adds the
// model's configuration to the metadata unless a config.json stands there. A capture that is not
// complete, and a trace of another version, are problems of the catalog; a trace.json of another
// program is left alone.
void add_trace(const ByteSource& json, const Limits& limits, Catalog& catalog);

// The names of the tensors of a captured folder in the order in which they were computed; empty
// where no trace says it.
std::vector<std::string> recorded_order(const Catalog& catalog);

}  // namespace tensordiff
