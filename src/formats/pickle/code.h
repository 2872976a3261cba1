// The names of code that a pickle holds. They are told and never looked up.

#pragma once

#include <string>
#include <vector>

#include "formats/pickle/rebuild.h"

namespace tensordiff::pickle {

struct CodeOrigin {
  std::string where;
  bool scripted = false;  // TorchScript: __torch__.* are classes of the archive itself.
};

// One Problem for each name of code in a pickle and in the torch files inside it.
void report_code(const Rebuilder& rebuilder, const CodeOrigin& origin,
                 std::vector<Problem>& problems);

}  // namespace tensordiff::pickle
