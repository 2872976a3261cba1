// What a trace tells that names do not: what a module computes, by its class, and under which other
// names the model has it or its parameters.

#pragma once

#include <span>

#include "formats/trace_file.h"

namespace tensordiff {

// Says what the outputs of modules are whose names are not understood. After read_places().
void read_classes(std::span<const Trace> traces, Catalog& catalog);

// Lets captures meet by any name of a module that has several: the first of them, which a capture
// writes, depends on the order in which a model lists its parts.
void meet_by_aliases(Catalog& a, Catalog& b);

// Adds the parameters that a checkpoint leaves out because the captured model has them under
// another name too, as a head that is the embedding.
void add_tied(const RecordedRun& run, Catalog& weights);

}  // namespace tensordiff
