// trace.json, which tensordiff.capture() of the Python package writes beside the tensors of a run:
// every call in the order of its end, with its results. docs/python/capture.md has the schema.

#pragma once

#include <map>
#include <string>
#include <vector>

#include "formats/format.h"

namespace tensordiff {

// Puts the tensors of a captured folder in the order in which they were computed, and adds the
// model's configuration to the metadata unless a config.json stands there. A capture that is not
// complete, and a trace of another version, are problems of the catalog; a trace.json of another
// program is left alone.
void add_trace(const ByteSource& json, const Limits& limits, Catalog& catalog);

// What the trace of a captured folder says of its tensors, by their names; empty without a trace.
struct RecordedRun {
  std::vector<std::string> order;  // In which they were computed.
  // What each was computed from: the nearest tensors before it that were saved.
  std::map<std::string, std::vector<std::string>> inputs;
};
RecordedRun recorded_run(const Catalog& catalog);

}  // namespace tensordiff
