// trace.json, which tensordiff.capture() of the Python package writes beside the tensors of a run:
// every call in the order of its end, with its results. docs/python/capture.md has the schema. Of a
// run of several processes, each has a folder "rank_N" with a trace of its own.

#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "formats/format.h"

namespace tensordiff {

// A trace that this program can read.
struct Trace {
  std::string folder;  // "rank_1/"; empty: of the input itself.
  Json json;
};

// Puts the tensors of a captured folder in the order in which they were computed, and adds the
// model's configuration to the metadata unless a config.json stands there. A capture that is not
// complete, and a trace of another version, are problems of the catalog; a trace.json of another
// program is left alone. Gives what it read.
std::vector<Trace> add_traces(const Limits& limits, Catalog& catalog);

// What the trace of a captured folder says of its tensors, by their names; empty without a trace.
// Of several ranks, that of the first: all compute in one order.
struct RecordedRun {
  std::vector<std::string> order;  // In which they were computed.
  // What each was computed from: the nearest tensors before it that were saved.
  std::map<std::string, std::vector<std::string>> inputs;
  // The other names of parameters that the model has under several.
  std::map<std::string, std::vector<std::string>> tied;
  // The same of modules.
  std::map<std::string, std::vector<std::string>> aliases;
};
RecordedRun recorded_run(const Catalog& catalog);

}  // namespace tensordiff
