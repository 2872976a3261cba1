// A comparison by many processes: each measures its part, one merges them into the report that a
// single process would have made, byte for byte.
//
// The merge does all that the pipeline does but measuring: it opens both inputs, pairs and aligns,
// and explains; what the parts have measured stands for reading all tensors.

#pragma once

#include <string>
#include <vector>

#include "parts/partial.h"
#include "pipeline.h"

namespace tensordiff {

// Measures one part. `options` are kept for the merge, which has to use the same.
Result<Partial> measure_part(const Request& request, const PartNumber& number,
                             std::vector<GivenOption> options);

// A partial result and where it comes from.
struct NamedPartial {
  std::string name;
  Partial partial;
};

// Whether these are all parts of one comparison, each once; the error names those that are not.
Result<void> check_parts(const std::vector<NamedPartial>& parts);

// The report. The parts have passed check_parts(); the request has their inputs and options.
Result<Report> merge_parts(Request request, const std::vector<NamedPartial>& parts);

}  // namespace tensordiff
