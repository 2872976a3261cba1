// The names of code that a pickle holds. They are told and never looked up; those that are known to
// be harmless (danger.h) are not told.

#pragma once

#include <string>
#include <vector>

#include "formats/pickle/rebuild.h"

namespace tensordiff::pickle {

struct CodeOrigin {
  std::string where;
  bool scripted = false;  // TorchScript: __torch__.* are classes of the archive itself.
};

// One Problem for each name of code in a pickle, the most dangerous first.
void report_names(const Graph& graph, const CodeOrigin& origin, std::vector<Problem>& problems);

// The same for a pickle and the torch files inside it.
void report_code(const Rebuilder& rebuilder, const CodeOrigin& origin,
                 std::vector<Problem>& problems);

// The names of code in pickles one after another, as far as they can be followed: for files that
// are not read, such as one that breaks off or has a second pickle behind the first.
std::vector<Problem> code_in(const Bytes& file, uint64_t begin, const Limits& limits,
                             const std::string& where);

}  // namespace tensordiff::pickle
